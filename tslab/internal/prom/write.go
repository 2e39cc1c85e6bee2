package prom

import (
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"temporal-slab/tslab/internal/snapshot"
)

// Registry has the series of one snapshot.
func Registry(snap *snapshot.Snapshot) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(Collector{snap})
	return r
}

// Write writes the text format, or OpenMetrics.
func Write(w io.Writer, snap *snapshot.Snapshot, open bool) error {
	families, err := Registry(snap).Gather()
	if err != nil {
		return fmt.Errorf("the snapshot does not produce valid series: %w", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	if open {
		format = expfmt.NewFormat(expfmt.TypeOpenMetrics)
	}
	enc := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	if c, ok := enc.(expfmt.Closer); ok {
		return c.Close()
	}
	return nil
}
