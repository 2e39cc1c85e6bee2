package cli

// tslab alone: a process is picked, and looked into.

import (
	"time"

	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/screen"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/units"
)

// pick lets somebody at a terminal choose among several processes; the only one needs no choice.
func (a *app) pick(c *cobra.Command) error {
	list := choices()
	pid := 0
	if len(list) == 1 {
		pid = list[0].Pid
	} else {
		var err error
		if pid, err = screen.Pick(c.Context(), choices, a.color, a.in, a.stdout); err != nil || pid == 0 {
			return err
		}
	}
	a.choice.Pid, a.choice.PidSet, a.choice.Slot, a.choice.Timeout, a.interval = pid, true, -1, 10*time.Second, time.Second
	src, err := a.choice.Open(a.in)
	if err != nil {
		return err
	}
	defer src.Close()
	return a.screen(c.Context(), src, screen.Options{Tab: "overview"})
}

// choices are the processes that show their statistics, in the order of their ids.
func choices() []screen.Choice {
	list, _ := segment.List()
	var rows []screen.Choice
	for _, p := range list {
		row := screen.Choice{Pid: p.Pid, Command: units.Text(p.Command), State: p.State.String(), Committed: "-", Live: "-", Grows: "-"}
		if snap, err := p.Segment.Read(-1); err == nil {
			g := snap.Global()
			row.Committed, row.Live = units.Bytes(g.U("committed_bytes")), units.Bytes(g.U("live_bytes"))
			if v := g.F("growth_per_second"); v >= 1 {
				row.Grows = units.Bytes(uint64(v))
			}
			row.State = snap.State.String()
		}
		p.Segment.Close()
		rows = append(rows, row)
	}
	return rows
}
