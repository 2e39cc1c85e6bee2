package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"temporal-slab/tslab/internal/prom"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/units"
)

// How many processes one scrape has, and how many labels of each unless told otherwise.
const (
	mostScraped = 256
	// TopLabels is the default of Options.TopLabels.
	TopLabels = 20
)

// program is the name of the program of a command line.
func program(command string) string {
	name, _, _ := strings.Cut(command, " ")
	return units.Text(name)
}

// fleet is all processes in one scrape: each series has the process and its program, and of labels those that hold most.
func (s *Server) fleet(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	registry := prometheus.NewRegistry()
	list, _ := segment.List()
	shown := 0
	for _, p := range list {
		if shown < mostScraped {
			s.scrape(registry, p)
			shown++
		}
		p.Segment.Close()
	}
	all := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "temporal_slab_exporter_processes", Help: "Processes that publish their statistics, by whether this scrape contains them."},
		[]string{"shown"})
	took := prometheus.NewGauge(prometheus.GaugeOpts{Name: "temporal_slab_exporter_scrape_duration_seconds", Help: "Time spent reading the statistics."})
	registry.MustRegister(all, took)
	all.WithLabelValues("yes").Set(float64(shown))
	all.WithLabelValues("no").Set(float64(len(list) - shown))
	took.Set(time.Since(begin).Seconds())
	w.Header().Del("Content-Type")
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
}

// scrape adds the series of one process; of one that cannot be read it says so.
func (s *Server) scrape(registry prometheus.Registerer, p segment.Process) {
	of := prometheus.WrapRegistererWith(prometheus.Labels{"pid": strconv.Itoa(p.Pid), "program": program(p.Command)}, registry)
	up := prometheus.NewGauge(prometheus.GaugeOpts{Name: "temporal_slab_exporter_up", Help: "Whether the statistics could be read."})
	_ = of.Register(up)
	snap, err := p.Segment.Read(-1)
	if err != nil {
		return
	}
	snap = snap.TopLabels(s.topLabels())
	if _, err := prom.Registry(snap).Gather(); err != nil { // what cannot be written must not spoil the others
		return
	}
	up.Set(1)
	_ = of.Register(prom.Collector{Snap: snap})
}

func (s *Server) topLabels() int {
	if s.o.TopLabels > 0 {
		return s.o.TopLabels
	}
	return TopLabels
}

// target is a group of Prometheus's HTTP discovery.
type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery lists each process as a target of its own at this server.
func (s *Server) discovery(w http.ResponseWriter, r *http.Request) {
	groups := []target{}
	for _, p := range s.processes() {
		if p.Recorded {
			continue
		}
		pid := strconv.Itoa(p.Pid)
		groups = append(groups, target{[]string{r.Host}, map[string]string{"__metrics_path__": "/processes/" + pid + "/metrics", "pid": pid, "program": program(p.Command)}})
	}
	slices.SortFunc(groups, func(a, b target) int { return cmp.Compare(a.Labels["__metrics_path__"], b.Labels["__metrics_path__"]) })
	sendJSON(w, r, groups)
}
