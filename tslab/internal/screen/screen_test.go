package screen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/testdata"
	"temporal-slab/tslab/internal/view"
)

// answers gives what a test has prepared.
type answers struct {
	snaps []*snapshot.Snapshot
	err   error
}

func (a *answers) Name() string { return "a test" }
func (a *answers) Close() error { return nil }
func (a *answers) Next(context.Context) (*snapshot.Snapshot, error) {
	if len(a.snaps) == 0 {
		return nil, a.err
	}
	s := a.snaps[0]
	a.snaps = a.snaps[1:]
	return s, nil
}

// moment is the document so many seconds later, busier.
func moment(n uint64) *snapshot.Snapshot {
	s := testdata.Snapshot()
	add := func(r *snapshot.Row, key string, v uint64) {
		m := metrics.Of(r.Section).Find(key)
		r.SetUint(m, r.Uint(m)+v)
	}
	add(s.Document(), "timestamp_ns", n*1_000_000_000)
	add(s.Document(), "uptime_ns", n*1_000_000_000)
	add(s.Global(), "live_bytes", n*n*4096)
	add(s.Rows(metrics.Label)[1], "objects_allocated", n*1000)
	return s
}

func testModel(t *testing.T, tab string) *model {
	t.Helper()
	m := newModel(context.Background(), Options{Source: &answers{}, Interval: time.Second, Tab: tab})
	for n := range uint64(12) {
		m.take(moment(n))
	}
	return m
}

func size(m *model, w, h int) []string {
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return m.lines()
}

func press(m *model, keys ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, k := range keys {
		cmd = m.key(k)
	}
	return cmd
}

var everyKey = []string{"down", "/", "s", "backspace", "enter", "enter", "esc", "/", "esc", "enter", "pgdown", "esc", "right", "right", "left", "r", "b", "G", "g", "?", "x", "p", "p", "+", "-", "k", "]", "["}

// No screen is too small or too large, whatever was pressed: never more lines or cells than there are.
func TestEverySize(t *testing.T) {
	m := testModel(t, "overview")
	for tab, name := range tabs {
		for _, wh := range [][2]int{{80, 24}, {40, 10}, {1, 1}, {500, 50}, {3, 2}, {2, 200}, {200, 1}, {20, 5}, {79, 3}, {79, 4}, {0, 0}} {
			m.open(tab)
			for _, key := range append([]string{""}, everyKey...) {
				press(m, key)
				lines := size(m, wh[0], wh[1])
				if len(lines) > max(1, wh[1]) {
					t.Errorf("%s at %v after %q: %d lines", name, wh, key, len(lines))
				}
				for _, l := range lines {
					if w := ansi.StringWidth(l); w > max(1, wh[0]) {
						t.Errorf("%s at %v after %q: %d cells: %q", name, wh, key, w, l)
					}
				}
			}
		}
	}
	m = newModel(context.Background(), Options{Source: &answers{}, Interval: time.Second, Tab: "phases"})
	m.take(snapshot.New()) // nothing to show
	press(m, "down", "enter")
	if text := strings.Join(size(m, 80, 24), "\n"); !strings.Contains(text, "There are none.") {
		t.Error(text)
	}
}

func TestWhatIsShown(t *testing.T) {
	for _, c := range []struct {
		tab  string
		keys []string
		want []string
	}{
		{"overview", nil, []string{"temporal-slab", "pid", "live every 1s", "alloc/s", "1000", "█", "need attention: press 7"}},
		{"overview", []string{"b"}, []string{"1000", "given back/s"}},
		{"labels", nil, []string{"committed▼", "POST /orders", "sessions", "←→ order"}},
		{"labels", []string{"right"}, []string{"live▼"}},
		{"labels", []string{"left"}, []string{"committed", "q quit"}},
		{"labels", []string{"i"}, []string{"objects_allocated", "Objects allocated under the label.", "esc back"}},
		{"phases", []string{"enter"}, []string{"epoch_era", "esc back"}},
		{"phases", nil, []string{"closing", "era"}},
		{"classes", []string{"r"}, []string{"class", "(", "0/s"}},
		{"epochs", nil, []string{"memory▼", "active"}},
		{"closes", nil, []string{"ended▼", "ago", "4 closes"}},
		{"doctor", nil, []string{"temporal-slab doctor: pid", "1. Leaks"}},
		{"doctor", nil, []string{"see ACTION below"}},
		{"overview", []string{"?"}, []string{"read more often", "any key: back"}},
		{"overview", []string{"p"}, []string{"paused"}},
		{"overview", []string{"+"}, []string{"every 500ms"}},
		{"overview", []string{"7"}, []string{"1. Leaks", "scroll"}},
	} {
		m := testModel(t, c.tab)
		press(m, c.keys...)
		text := strings.Join(size(m, 120, 30), "\n")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v: no %q in\n%s", c.tab, c.keys, want, text)
			}
		}
	}
}

// The cursor and what it opened stay with the row while the order changes.
func TestDetailFollowsItsRow(t *testing.T) {
	m := testModel(t, "labels")
	press(m, "down", "i")
	name := strings.Fields(size(m, 120, 30)[2])[0]
	m.take(moment(13))
	if again := strings.Fields(size(m, 120, 30)[2])[0]; again != name {
		t.Errorf("%s, then %s", name, again)
	}
	m.take(snapshot.New())
	if text := strings.Join(size(m, 120, 30), "\n"); !strings.Contains(text, "It is gone.") {
		t.Error(text)
	}
}

// A source that fails is told and asked again; a process that ended is not.
func TestFaults(t *testing.T) {
	m := testModel(t, "overview")
	if cmd := m.came(reading{err: errors.New("connection refused\nby all")}); cmd == nil {
		t.Error("it is not asked again")
	}
	text := strings.Join(size(m, 80, 24), "\n")
	if !strings.Contains(text, "no answer") || !strings.Contains(text, "connection refused by all") {
		t.Error(text)
	}
	m.came(reading{snap: moment(13)})
	if text := strings.Join(size(m, 80, 24), "\n"); strings.Contains(text, "refused by") {
		t.Error("an old fault is still shown")
	}
	if cmd := m.came(reading{err: fmt.Errorf("pid 1: %w", segment.ErrEnded)}); cmd != nil {
		t.Error("a dead process is asked again")
	}
	if text := strings.Join(size(m, 80, 24), "\n"); !strings.Contains(text, "ended: the last figures") {
		t.Error(text)
	}
}

// A tick that is out of date reads nothing: pausing twice does not double the pace.
func TestOneReadingAtATime(t *testing.T) {
	m := testModel(t, "overview")
	m.wait()
	old := due{m.round}
	press(m, "p", "p")
	if _, cmd := m.Update(old); cmd != nil {
		t.Error("an old tick reads")
	}
	if _, cmd := m.Update(due{m.round}); cmd == nil {
		t.Error("the new tick does not read")
	}
	press(m, "p")
	if _, cmd := m.Update(due{m.round}); cmd != nil {
		t.Error("it reads while it is paused")
	}
}

func TestAProcessThatRestarts(t *testing.T) {
	m := testModel(t, "overview")
	m.take(moment(0))
	text := strings.Join(size(m, 120, 30), "\n")
	if !strings.Contains(text, "no rates: restarted") {
		t.Error(text)
	}
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "alloc/s") && strings.Fields(l)[1] != "-" {
			t.Errorf("a rate over a restart: %s", l)
		}
	}
}

// Enter goes from a label to its phases, and esc back to the row that it came from.
func TestFromALabelToItsPhases(t *testing.T) {
	m := testModel(t, "labels")
	label := ""
	for range len(m.now.To.Rows(metrics.Label)) { // one that has phases with rows
		rows := view.Find("labels").Rows(m.now, m.orders["labels"])
		label = rows[m.cursor].S("label")
		press(m, "enter")
		if m.rows(m.list()) > 0 {
			break
		}
		press(m, "esc", "down")
	}
	if tabs[m.tab] != "phases" || m.rows(m.list()) == 0 {
		t.Fatal("no label has phases")
	}
	for _, r := range m.list().Rows(m.now, m.orders["phases"]) {
		if r.S("label") != label {
			t.Errorf("a phase of %q among those of %q", r.S("label"), label)
		}
	}
	at := m.fromCursor
	if text := strings.Join(size(m, 120, 40), "\n"); !strings.Contains(text, "phases of \""+label+"\"; esc shows all") {
		t.Error(text)
	}
	press(m, "esc")
	if tabs[m.tab] != "labels" || m.cursor != at {
		t.Errorf("esc leads to row %d of %s", m.cursor, tabs[m.tab])
	}
	press(m, "3")
	if m.orders["phases"].Of != nil || m.rows(m.list()) != len(m.now.To.Rows(metrics.Phase)) {
		t.Error("the tab of phases shows those of one label")
	}
}

func TestFilter(t *testing.T) {
	m := testModel(t, "labels")
	all := m.rows(m.list())
	press(m, "/", "S", "e", "s", "s")
	if got := m.rows(m.list()); got != 1 || !m.typing {
		t.Errorf("%d rows", got)
	}
	if text := strings.Join(size(m, 80, 24), "\n"); !strings.Contains(text, "/Sess") || strings.Contains(text, "POST /orders") || !strings.Contains(text, "sessions") {
		t.Error(text)
	}
	press(m, "q", "backspace", "enter") // letters are letters there
	if m.typing || m.rows(m.list()) != 1 {
		t.Error("enter does not keep the filter")
	}
	press(m, "esc")
	if m.rows(m.list()) != all {
		t.Error("esc does not show all")
	}
	press(m, "/", "x", "y", "z")
	if text := strings.Join(size(m, 80, 24), "\n"); !strings.Contains(text, "There are none.") {
		t.Error(text)
	}
	press(m, "esc")
	if m.typing || m.rows(m.list()) != all {
		t.Error("esc does not end it")
	}
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{0, 7, 8}, "▁▇█"}, {[]float64{1000, 1001, 1002}, "▁▄█"}, {[]float64{5, 5, 5}, "▁▁▁"}, {[]float64{-1, 3, -1, 4}, " ▁ █"}, {[]float64{0}, "▁"}, {nil, ""},
	} {
		if got := spark(c.values, 10); got != c.want {
			t.Errorf("%v: %q, not %q", c.values, got, c.want)
		}
	}
}

// However small the screen, what needs attention is said on it, and labels keep their names.
func TestTheAlarmStays(t *testing.T) {
	m := testModel(t, "overview")
	if m.findings() == 0 {
		t.Fatal("the document has no finding")
	}
	for _, wh := range [][2]int{{36, 12}, {80, 24}, {120, 12}, {40, 6}} {
		if text := strings.Join(size(m, wh[0], wh[1]), "\n"); !strings.Contains(text, "attention") {
			t.Errorf("%v:\n%s", wh, text)
		}
	}
	press(m, "2")
	if text := strings.Join(size(m, 40, 24), "\n"); !strings.Contains(text, fmt.Sprintf(" !%d ", m.findings())) {
		t.Error(text)
	}
	const long = "session:shard-0123:europe-west1"
	snap := moment(12)
	snap.Rows(metrics.Label)[1].SetText(metrics.Of(metrics.Label).Find("label"), long)
	m.take(snap)
	for _, width := range []int{80, 120} {
		if text := strings.Join(size(m, width, 24), "\n"); !strings.Contains(text, long) {
			t.Errorf("%d columns cut the label:\n%s", width, text)
		}
	}
}

func TestPicker(t *testing.T) {
	list := []Choice{{1, "server --port 80", "running", "1 MiB", "1 KiB", "-"}, {22, "worker", "stopped", "2 MiB", "1 KiB", "1 KiB"}, {3, "server --port 81", "running", "1 MiB", "1 KiB", "-"}}
	p := &picker{list: func() []Choice { return list }, rows: list, width: 80, height: 24, paint: &model{}}
	for _, wh := range [][2]int{{80, 24}, {1, 1}, {20, 3}, {500, 2}} {
		p.Update(tea.WindowSizeMsg{Width: wh[0], Height: wh[1]})
		for _, l := range p.lines() {
			if ansi.StringWidth(l) > wh[0] {
				t.Errorf("%v: %q", wh, l)
			}
		}
		if len(p.lines()) > wh[1] {
			t.Errorf("%v: %d lines", wh, len(p.lines()))
		}
	}
	p.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	p.key("down")
	p.take([]Choice{list[2], list[0], list[1]}) // the cursor stays at its process
	if p.key("enter"); p.picked != 22 {
		t.Error("picked", p.picked)
	}
	for _, k := range []string{"/", "8", "1"} {
		p.key(k)
	}
	if text := strings.Join(p.lines(), "\n"); strings.Contains(text, "worker") || !strings.Contains(text, "port 81") || !strings.Contains(text, "/81") {
		t.Error(text)
	}
	if p.key("enter"); p.picked != 3 {
		t.Error("picked", p.picked)
	}
	p.picked = 0
	p.key("/")
	p.key("z")
	if p.key("enter"); p.picked != 0 {
		t.Error("picked of none", p.picked)
	}
	if cmd := p.key("esc"); cmd != nil || p.filter != "" {
		t.Error("esc leaves at once")
	}
	if cmd := p.key("q"); cmd == nil {
		t.Error("q does not leave")
	}
}
