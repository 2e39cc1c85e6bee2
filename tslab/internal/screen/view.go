package screen

import (
	"errors"
	"fmt"
	"math"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"temporal-slab/tslab/internal/metrics"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/table"
	"temporal-slab/tslab/internal/view"
)

var (
	styleTitle  = lipgloss.NewStyle().Bold(true)
	styleTab    = lipgloss.NewStyle().Reverse(true)
	styleHead   = lipgloss.NewStyle().Bold(true)
	styleFaint  = lipgloss.NewStyle().Faint(true)
	styleGood   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	styleWarn   = lipgloss.NewStyle().Foreground(lipgloss.Yellow).Bold(true)
	styleBad    = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	styleSpark  = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	styleCursor = lipgloss.NewStyle().Reverse(true)
)

func (m *model) paint(s lipgloss.Style, text string) string {
	if !m.o.Color && s.GetReverse() {
		return s.Render(text) // a place on the screen, not a colour
	}
	if !m.o.Color {
		return text
	}
	return s.Render(text)
}

// View is the whole screen.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "tslab"
	return v
}

// lines are exactly as many as the screen has, and none is longer.
func (m *model) lines() []string {
	lines := []string{m.title(), m.tabLine()}
	room := m.height - len(lines) - 1
	switch {
	case m.height < 4: // nothing fits but the content
		lines, room = nil, m.height
	case m.height < 12:
		lines, room = lines[:1], m.height-2
	}
	body := m.body(room)
	lines = append(lines, body[:min(len(body), max(0, room))]...)
	if m.height >= 4 {
		for len(lines) < m.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, m.foot())
	}
	lines = lines[:min(len(lines), m.height)]
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "")
	}
	return lines
}

func (m *model) body(room int) []string {
	switch {
	case m.help:
		return helpLines
	case m.list() != nil && m.detail != nil:
		return m.window(m.detailLines(), room)
	case m.list() != nil:
		return m.listLines(room)
	case tabs[m.tab] == "doctor":
		return m.window(m.doctorLines(), room)
	}
	return m.overview(room)
}

// spread puts one text to the left and one to the right.
func (m *model) spread(left, right string) string {
	room := m.width - ansi.StringWidth(right) - 2
	if room < ansi.StringWidth(right) { // half of the screen at most is for the right one
		return left
	}
	left = ansi.Truncate(left, room, "…")
	return left + strings.Repeat(" ", m.width-ansi.StringWidth(left)-ansi.StringWidth(right)) + right
}

func (m *model) title() string {
	state := m.paint(styleGood, "live") + " every " + m.o.Interval.String()
	switch {
	case m.ended:
		state = m.paint(styleWarn, "ended") + ": the last figures"
	case m.paused:
		state = m.paint(styleWarn, "paused")
	case m.fault != nil && errors.Is(m.fault, segment.ErrEnded):
		state = m.paint(styleWarn, "ended") + ": waiting for the next"
	case m.fault != nil:
		state = m.paint(styleBad, "no answer")
	}
	if n := m.findings(); n != 0 && m.height < 12 { // no line of tabs tells
		state = m.paint(styleWarn, fmt.Sprintf("!%d ", n)) + state
	}
	return m.spread(m.paint(styleTitle, view.Head(m.now.To)), state)
}

func (m *model) tabLine() string {
	var words []string
	if n := m.findings(); n != 0 && tabs[m.tab] != "doctor" { // in front: the end of the line may not fit
		words = append(words, m.paint(styleWarn, fmt.Sprintf(" !%d", n)))
	}
	for k, name := range tabs {
		word := fmt.Sprintf(" %d %s ", k+1, name)
		if name == "doctor" {
			if n := m.findings(); n != 0 {
				word = fmt.Sprintf(" %d %s(%d) ", k+1, name, n)
			}
		}
		if k == m.tab {
			word = m.paint(styleTab, word)
		}
		words = append(words, word)
	}
	return strings.Join(words, "")
}

func (m *model) foot() string {
	switch {
	case m.fault != nil:
		return m.paint(styleBad, strings.Join(strings.Fields(m.fault.Error()), " "))
	case m.help:
		return m.paint(styleFaint, "any key: back")
	case m.detail != nil:
		return m.paint(styleFaint, "q quit  esc back  ↑↓ scroll  b bytes")
	case m.typing:
		return "/" + m.orders[m.list().Name].Filter + "▏" + m.paint(styleFaint, "  ⏎ keep  esc all of them")
	case m.list() != nil && m.list().Section == metrics.Label:
		return m.paint(styleFaint, "q quit  ? help  ←→ order  ↑↓ row  ⏎ its phases  i all of it  / filter  r rates  b bytes  p pause")
	case m.list() != nil:
		return m.paint(styleFaint, "q quit  ? help  ←→ order  ↑↓ row  ⏎ all of it  / filter  esc back  r rates  b bytes  p pause")
	case tabs[m.tab] == "doctor":
		return m.paint(styleFaint, "q quit  ? help  tab next  ↑↓ scroll  p pause")
	}
	return m.paint(styleFaint, "q quit  ? help  tab next  +- interval  b bytes  p pause")
}

var helpLines = []string{
	"1-7, tab        overview, labels, phases, closes, classes, epochs, doctor",
	"left, right     order a list by another column",
	"up, down        move; pgup, pgdn, home, end",
	"enter           show a label's phases, or every figure of another row with its meaning; esc goes back",
	"i               show every figure of a row",
	"/               show only rows whose name contains a text; esc shows all",
	"r               show counters as totals or per second",
	"a               also show classes that have never been used",
	"b               show exact numbers, or numbers in units",
	"+ -             read more often, less often",
	"p, space        pause",
	"q, ctrl+c       leave",
	"",
	"A dash is a number that is not available: the process does not report it, or there is no rate: first",
	"reading, nothing published for three seconds, a restart of the process, or a clock that was set.",
}

// window is the part of a text that the scroll shows; it corrects a scroll past the end.
func (m *model) window(lines []string, room int) []string {
	m.scroll = max(0, min(m.scroll, len(lines)-max(1, room)))
	return lines[min(m.scroll, len(lines)):]
}

// ---- overview ----

func (m *model) overview(room int) (all []string) {
	t := table.Table{Columns: []table.Column{{Title: "", Left: true}, {Title: "now"}, {Title: "change/s"}}}
	for k := range view.Flows {
		f := &view.Flows[k]
		now, change := f.Cell(m.now, m.o.Style), ""
		if !f.Counter {
			change = m.change(f)
		}
		t.Rows = append(t.Rows, []string{f.Title, now, change})
	}
	lines := t.Lines(0)
	widest := 0
	for _, l := range lines {
		widest = max(widest, ansi.StringWidth(l))
	}
	wide := min(60, m.width-widest-3)
	for k := range view.Flows {
		if wide < 8 {
			break
		}
		l := &lines[k+1]
		*l += strings.Repeat(" ", widest-ansi.StringWidth(*l)+3) + m.paint(styleSpark, spark(m.history[k], wide))
		if rest := m.width - ansi.StringWidth(*l) - 3; rest > 20 {
			*l += "   " + m.paint(styleFaint, ansi.Truncate(view.Flows[k].What, rest, "…"))
		}
	}
	lines[0] = m.paint(styleHead, lines[0])
	defer func() { all = append([]string{m.verdict()}, all...) }() // first, so that it never falls off
	if m.now.Seconds != 0 {
		lines[0] += "   " + m.paint(styleFaint, "rates over "+view.Over(m.now))
	}
	if m.now.Why != "" && m.now.From != nil {
		lines[0] += "   " + m.paint(styleWarn, "no rates: "+m.now.Why)
	}
	if len(lines) < room {
		lines = append(lines, "")
	}
	for _, f := range view.Summary(m.now.To, m.o.Style)[3:] { // the rest is above
		lines = append(lines, fmt.Sprintf("%-10s %s", f.Name, f.Text))
	}
	for _, note := range view.Notes(m.now.To) {
		lines = append(lines, m.paint(styleWarn, note))
	}
	return lines
}

func (m *model) verdict() string {
	switch n := m.findings(); n {
	case 0:
		return m.paint(styleGood, "nothing needs attention")
	case 1:
		return m.paint(styleWarn, "1 thing needs attention: press 7")
	default:
		return m.paint(styleWarn, fmt.Sprintf("%d things need attention: press 7", n))
	}
}

func (m *model) change(f *view.Flow) string {
	if m.now.Seconds == 0 {
		return "-"
	}
	v, ok := f.Change(m.now)
	switch {
	case !ok:
		return "-"
	case v == 0:
		return "="
	case v > 0:
		return "+" + m.o.Style.Float(f.Unit, v)
	}
	return m.o.Style.Float(f.Unit, v)
}

// spark draws the latest values from the least to the largest; a gap where nothing can be said. What stays the same is a low line.
func spark(values []float64, width int) string {
	values = values[max(0, len(values)-width):]
	most, least := 0.0, math.Inf(1)
	for _, v := range values {
		most = math.Max(most, v)
		if v >= 0 {
			least = math.Min(least, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case v < 0:
			b.WriteRune(' ')
		case v == least:
			b.WriteRune('▁')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(7, int((v-least)/(most-least)*7.999))])
		}
	}
	return b.String()
}

// ---- lists ----

// listLines are a list, below what it is a choice of.
func (m *model) listLines(room int) []string {
	l := m.list()
	words := m.orders[l.Name].Choice()
	if words == "" || room < 3 {
		return m.tableLines(l, room)
	}
	return append([]string{m.paint(styleWarn, fmt.Sprintf("%s %s; esc shows all", l.Name, words))}, m.tableLines(l, room-1)...)
}

func (m *model) tableLines(l *view.List, room int) []string {
	o := m.orders[l.Name]
	all := m.rows(l)
	m.cursor = max(0, min(m.cursor, all-1))
	t := l.Table(m.now, o, m.o.Style, m.o.Rates)
	rows := max(1, room-1)
	from := max(0, min(m.cursor-rows/2, all-rows))
	if len(t.Rows) > from+rows {
		t.Rows = t.Rows[:from+rows]
	}
	t.Rows = t.Rows[min(from, len(t.Rows)):]
	t.Head = func(s string) string { return m.paint(styleHead, s) }
	lines := t.Lines(m.width)
	if room < 2 && len(lines) > 1 {
		return lines[1:]
	}
	if at := m.cursor - from + 1; at > 0 && at < len(lines) {
		pad := max(0, m.width-ansi.StringWidth(lines[at]))
		lines[at] = m.paint(styleCursor, lines[at]+strings.Repeat(" ", pad))
	}
	if all == 0 {
		lines = append(lines, "", "There are none.")
	}
	if _, unused := l.Count(m.now.To, o); unused > 0 {
		lines = append(lines, m.paint(styleFaint, fmt.Sprintf("and %d unused %s: press a", unused, l.Name)))
	}
	if sum := l.Sum(m.now.To, m.o.Style); sum != "" {
		lines = append(lines, m.paint(styleFaint, sum))
	}
	if left := view.Left(m.now.To, l); left != "" {
		lines = append(lines, m.paint(styleFaint, left))
	}
	return lines
}

func (m *model) detailLines() []string {
	l := m.list()
	var row *snapshot.Row
	for _, r := range m.now.To.Rows(l.Section) {
		if rates.Identify(r) == *m.detail && r.AllocatorName() == m.detailOf {
			row = r
		}
	}
	if row == nil {
		return []string{"It is gone."}
	}
	t := table.Table{Head: func(s string) string { return m.paint(styleHead, s) },
		Columns: []table.Column{{Title: view.RowName(m.now.To, row), Left: true}, {Title: "now"}, {Title: "per second"}, {Title: "", Left: true}}}
	for _, metric := range metrics.Of(l.Section).Metrics {
		if metric.IsArray() || metric.Key == "version" {
			continue
		}
		now, rate := view.Cell(m.now, row, metric, m.o.Style, false), ""
		if metric.Type == metrics.String {
			now = view.RowName(m.now.To, row)
		}
		if metric.Kind == metrics.Counter {
			rate = view.Cell(m.now, row, metric, m.o.Style, true)
		}
		t.Rows = append(t.Rows, []string{metric.Key, now, rate, metric.Help})
	}
	if m.width < 60 { // rather the numbers than the name of each
		return t.Lines(m.width)
	}
	return t.Lines(0)
}

// ---- doctor ----

func (m *model) doctorLines() []string {
	var b strings.Builder
	m.report.Write(&b, func(s string) string { return s })
	var lines []string
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		isAction := strings.HasPrefix(line[indent:], "ACTION:")
		wrapped := strings.Split(ansi.Wrap(line[indent:], max(1, m.width-indent), ""), "\n")
		for _, w := range wrapped {
			text := strings.Repeat(" ", indent) + w
			if isAction {
				text = m.paint(styleWarn, text)
			}
			lines = append(lines, text)
		}
	}
	return lines
}
