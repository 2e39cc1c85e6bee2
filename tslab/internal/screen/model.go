// Package screen is what top and watch show in a terminal: tabs with an overview, the lists and the doctor.
//
// The model holds the last two readings and a little history; a reading is made in the background, and the next one is
// due an interval after it came. View lays out exactly the lines and cells there are, down to one by one.
package screen

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"temporal-slab/tslab/internal/doctor"
	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/units"
	"temporal-slab/tslab/internal/view"
)

// Options say what is shown first.
type Options struct {
	Source   source.Source
	Interval time.Duration
	Tab      string // "overview", "doctor" or a list
	Order    view.Order
	Rates    bool
	Color    bool
	Style    units.Style
	Follows  bool // the source goes on with another process when one has ended
}

const (
	historyMost   = 512
	leastInterval = 100 * time.Millisecond
	mostInterval  = time.Minute
)

var tabs = []string{"overview", "labels", "phases", "closes", "classes", "epochs", "doctor"}

type model struct {
	ctx           context.Context
	o             Options
	width, height int
	tab           int
	orders        map[string]view.Order
	readings      rates.Series
	now           *rates.Interval
	report        *doctor.Report
	history       [][]float64 // of each flow; what cannot be said is -1
	fault         error       // of the latest reading
	fatal         error       // ends the program
	ended         bool
	paused        bool
	help          bool
	detail        *rates.Identity // the row that is shown alone
	detailOf      string          // its allocator, among several
	cursor        int
	scroll        int
	round         int  // readings asked for; a tick of an earlier round is stale
	typing        bool // into the filter of the list
	from          int  // the tab from which a label's phases were asked for, and
	fromCursor    int  // the row there
}

type reading struct {
	snap *snapshot.Snapshot
	err  error
}

type due struct{ round int }

func newModel(ctx context.Context, o Options) *model {
	m := &model{ctx: ctx, o: o, width: 80, height: 24, orders: map[string]view.Order{}, history: make([][]float64, len(view.Flows))}
	for _, l := range view.Lists {
		metric, _, _ := l.Metric(l.By)
		m.orders[l.Name] = view.Order{Metric: metric}
	}
	for k, name := range tabs {
		if name == o.Tab {
			m.tab = k
		}
	}
	if l := view.Find(o.Tab); l != nil && o.Order.Metric != nil {
		m.orders[o.Tab] = o.Order
	}
	return m
}

// Run shows the screen until somebody leaves or the context ends.
func Run(ctx context.Context, o Options, in, out *os.File) error {
	m := newModel(ctx, o)
	first, err := o.Source.Next(ctx) // what fails at once needs no screen
	if err != nil {
		return err
	}
	m.take(first)
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, p.Quit)()
	if _, err = p.Run(); err != nil {
		if errors.Is(err, tea.ErrProgramPanic) {
			return errors.New("a mistake in tslab ended the screen; the lines above say where")
		}
		return err
	}
	return m.fatal
}

// Init asks for the second reading.
func (m *model) Init() tea.Cmd { return m.wait() }

func (m *model) read() tea.Cmd {
	return func() tea.Msg {
		snap, err := m.o.Source.Next(m.ctx)
		return reading{snap, err}
	}
}

func (m *model) wait() tea.Cmd {
	m.round++
	round, after := m.round, m.o.Interval
	if m.now != nil && m.now.From == nil && round < 15 { // until there are rates to show, or nothing happens
		after = min(after, 2*leastInterval)
	}
	return tea.Tick(after, func(time.Time) tea.Msg { return due{round} })
}

func (m *model) take(snap *snapshot.Snapshot) {
	m.now = m.readings.Next(snap)
	m.report = doctor.Diagnose(snap, doctor.LeakSeconds)
	for k := range view.Flows {
		v, ok := view.Flows[k].Value(m.now)
		if !ok {
			v = -1
		}
		h := append(m.history[k], v)
		m.history[k] = h[max(0, len(h)-historyMost):]
	}
}

// Update takes a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(1, msg.Width), max(1, msg.Height)
	case due:
		if msg.round == m.round && !m.paused && !m.ended {
			return m, m.read()
		}
	case reading:
		return m, m.came(msg)
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			m.move(-3)
		} else {
			m.move(3)
		}
	}
	return m, nil
}

func (m *model) came(r reading) tea.Cmd {
	m.fault = r.err
	switch {
	case r.err == nil:
		if !m.paused {
			m.take(r.snap)
		}
	case errors.Is(r.err, segment.ErrEnded) && m.o.Follows:
	case errors.Is(r.err, segment.ErrEnded) || r.err == io.EOF:
		m.ended = true
		return nil
	case m.ctx.Err() != nil:
		return tea.Quit
	}
	return m.wait()
}

func (m *model) key(key string) tea.Cmd {
	if m.typing {
		m.typeKey(key)
		return nil
	}
	if m.help && key != "q" && key != "ctrl+c" {
		m.help = false
		return nil
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "esc", "backspace":
		m.back()
	case "/":
		if m.list() != nil && m.detail == nil {
			m.typing = true
		}
	case "?", "h":
		m.help = true
	case "tab", "]":
		m.open((m.tab + 1) % len(tabs))
	case "shift+tab", "[":
		m.open((m.tab + len(tabs) - 1) % len(tabs))
	case "1", "2", "3", "4", "5", "6", "7":
		m.open(int(key[0] - '1'))
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-max(1, m.height-5))
	case "pgdown":
		m.move(max(1, m.height-5))
	case "home", "g":
		m.move(-1 << 30)
	case "end", "G":
		m.move(1 << 30)
	case "left", "<":
		m.reorder(-1)
	case "right", ">":
		m.reorder(1)
	case "enter":
		m.enter()
	case "i":
		m.choose()
	case "r":
		m.o.Rates = !m.o.Rates
	case "a":
		if l := m.list(); l != nil {
			o := m.orders[l.Name]
			o.All = !o.All
			m.orders[l.Name] = o
		}
	case "b":
		m.o.Style.Raw = !m.o.Style.Raw
	case "p", "space":
		m.paused = !m.paused
		if !m.paused && !m.ended {
			return m.wait()
		}
	case "+", "=":
		m.o.Interval = max(leastInterval, m.o.Interval/2)
	case "-":
		m.o.Interval = min(mostInterval, m.o.Interval*2)
	}
	return nil
}

func (m *model) open(tab int) {
	if l := m.list(); l != nil && tabs[tab] != "phases" { // the phases of one label are left behind
		o := m.orders["phases"]
		o.Of = nil
		m.orders["phases"] = o
	}
	m.tab, m.cursor, m.scroll, m.detail = tab, 0, 0, nil
}

// typeKey takes a key into the filter.
func (m *model) typeKey(key string) {
	l := m.list()
	o := m.orders[l.Name]
	switch key {
	case "enter", "ctrl+c":
		m.typing = false
	case "esc":
		m.typing, o.Filter = false, ""
	case "backspace":
		if r := []rune(o.Filter); len(r) > 0 {
			o.Filter = string(r[:len(r)-1])
		}
	case "space":
		o.Filter += " "
	default:
		if len([]rune(key)) == 1 && len(o.Filter) < 64 {
			o.Filter += key
		}
	}
	m.orders[l.Name], m.cursor = o, 0
}

// back leaves a detail, then a filter, then the phases of one label.
func (m *model) back() {
	l := m.list()
	if m.detail != nil || l == nil {
		m.detail, m.scroll = nil, 0
		return
	}
	o := m.orders[l.Name]
	switch {
	case o.Filter != "":
		o.Filter = ""
	case o.Of != nil:
		o.Of = nil
		m.orders[l.Name] = o
		m.open(m.from)
		m.cursor = m.fromCursor
		return
	}
	m.orders[l.Name] = o
}

// enter goes from a label to its phases; of other rows it shows every figure.
func (m *model) enter() {
	l := m.list()
	if l == nil || m.detail != nil {
		return
	}
	rows := l.Rows(m.now, m.orders[l.Name])
	if l.Section != metrics.Label || m.cursor >= len(rows) || m.now.To.IsRest(rows[m.cursor]) {
		m.choose()
		return
	}
	label := rows[m.cursor].S("label")
	m.from, m.fromCursor = m.tab, m.cursor
	o := m.orders["phases"]
	o.Of, o.Filter = &label, ""
	m.orders["phases"] = o
	m.open(slices.Index(tabs, "phases"))
}

// rows is how many rows a list shows.
func (m *model) rows(l *view.List) int {
	o := m.orders[l.Name]
	n, _ := l.Count(m.now.To, o)
	if o.Most > 0 {
		n = min(n, o.Most)
	}
	return n
}

// list is the list of the tab; nil when it has none.
func (m *model) list() *view.List { return view.Find(tabs[m.tab]) }

func (m *model) move(by int) {
	if m.list() != nil && m.detail == nil {
		m.cursor = max(0, min(m.cursor+by, m.rows(m.list())-1))
		return
	}
	m.scroll = max(0, min(m.scroll+by, 1<<20)) // View knows the length
}

func (m *model) choose() {
	l := m.list()
	if l == nil || m.detail != nil {
		return
	}
	if rows := l.Rows(m.now, m.orders[l.Name]); m.cursor < len(rows) {
		id := rates.Identify(rows[m.cursor])
		m.detail, m.detailOf, m.scroll = &id, rows[m.cursor].AllocatorName(), 0
	}
}

// reorder takes the next or previous column to order by.
func (m *model) reorder(by int) {
	l := m.list()
	if l == nil || m.detail != nil {
		return
	}
	o, at := m.orders[l.Name], -1
	var keys []string
	for _, key := range l.Columns {
		if _, _, err := l.Metric(key); err != nil || key == "state" {
			continue
		}
		if key == o.Metric.Key {
			at = len(keys)
		}
		keys = append(keys, key)
	}
	if at < 0 {
		at = -by
	}
	at = (at + by + len(keys)) % len(keys)
	o.Metric, o.PerSecond, _ = l.Metric(keys[at])
	m.orders[l.Name] = o
}

func (m *model) findings() int { return len(m.report.Findings()) }
