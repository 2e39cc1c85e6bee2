// Package table lays rows out for a terminal of any width. Columns stand in the order of their importance: when there
// is no room the last ones go first, and a long name is cut no further than a label is long.
package table

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const gap = "  "

// Column is a heading; Left columns are names, the others numbers.
type Column struct {
	Title string
	Left  bool
}

// Table is text in cells.
type Table struct {
	Columns []Column
	Rows    [][]string
	Head    func(string) string // decorates the heading, when set
}

// Lines lays it out; width 0 has room for everything.
func (t *Table) Lines(width int) []string {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = ansi.StringWidth(c.Title)
		for _, r := range t.Rows {
			widths[i] = max(widths[i], ansi.StringWidth(r[i]))
		}
	}
	shown := len(widths)
	if width > 0 {
		shown = t.fit(widths, width)
	}
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = c.Title
	}
	lines := []string{t.line(head, widths[:shown])}
	if t.Head != nil {
		lines[0] = t.Head(lines[0])
	}
	for _, r := range t.Rows {
		lines = append(lines, t.line(r, widths[:shown]))
	}
	return lines
}

// leastName is how many cells the first column keeps before a figure has to go: the longest label has as many. Half of a narrow
// terminal is enough.
const leastName = 31

// fit says how many columns there is room for, and narrows the first.
func (t *Table) fit(widths []int, width int) int {
	total := -len(gap)
	for _, w := range widths {
		total += w + len(gap)
	}
	shown := len(widths)
	least := min(leastName, width/2)
	for ; shown > 1 && total > width; shown-- {
		if over := total - width; widths[0]-over >= least {
			break
		}
		total -= widths[shown-1] + len(gap)
	}
	if total > width {
		widths[0] = max(1, widths[0]-(total-width))
	}
	return shown
}

func (t *Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, w := range widths {
		cell := ansi.Truncate(cells[i], w, "…")
		pad := strings.Repeat(" ", max(0, w-ansi.StringWidth(cell)))
		if i > 0 {
			b.WriteString(gap)
		}
		if t.Columns[i].Left {
			b.WriteString(cell + pad)
		} else {
			b.WriteString(pad + cell)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
