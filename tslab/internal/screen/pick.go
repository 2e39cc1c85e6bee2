package screen

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"temporal-slab/tslab/internal/table"
)

// Choice is a process that can be picked.
type Choice struct {
	Pid                    int
	Command, State         string
	Committed, Live, Grows string
}

// picker is the list of processes to pick from.
type picker struct {
	list          func() []Choice
	rows          []Choice
	cursor        int
	filter        string
	typing        bool
	picked        int
	width, height int
	paint         *model // for colours
}

const pickEvery = 2 * time.Second

// Pick shows the processes until one is picked: its id, or 0 when somebody leaves.
func Pick(ctx context.Context, list func() []Choice, color bool, in, out *os.File) (int, error) {
	p := &picker{list: list, rows: list(), width: 80, height: 24, paint: &model{o: Options{Color: color}}}
	program := tea.NewProgram(p, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)()
	if _, err := program.Run(); err != nil {
		return 0, err
	}
	return p.picked, nil
}

type listed struct{ rows []Choice }

func (p *picker) next() tea.Cmd {
	return tea.Tick(pickEvery, func(time.Time) tea.Msg { return listed{p.list()} })
}

// Init asks for the list again.
func (p *picker) Init() tea.Cmd { return p.next() }

// Update takes a message.
func (p *picker) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.width, p.height = max(1, msg.Width), max(1, msg.Height)
	case listed:
		p.take(msg.rows)
		return p, p.next()
	case tea.KeyPressMsg:
		return p, p.key(msg.String())
	}
	return p, nil
}

// take keeps the cursor at its process.
func (p *picker) take(rows []Choice) {
	was := 0
	if shown := p.shown(); p.cursor < len(shown) {
		was = shown[p.cursor].Pid
	}
	p.rows = rows
	for n, r := range p.shown() {
		if r.Pid == was {
			p.cursor = n
		}
	}
	p.cursor = max(0, min(p.cursor, len(p.shown())-1))
}

func (p *picker) shown() []Choice {
	var list []Choice
	for _, r := range p.rows {
		if strings.Contains(strings.ToLower(fmt.Sprintf("%d %s", r.Pid, r.Command)), strings.ToLower(p.filter)) {
			list = append(list, r)
		}
	}
	return list
}

func (p *picker) key(key string) tea.Cmd {
	if p.typing && key != "enter" && key != "ctrl+c" && key != "up" && key != "down" {
		switch {
		case key == "esc":
			p.typing, p.filter = false, ""
		case key == "backspace":
			if r := []rune(p.filter); len(r) > 0 {
				p.filter = string(r[:len(r)-1])
			}
		case key == "space":
			p.filter += " "
		case len([]rune(key)) == 1 && len(p.filter) < 64:
			p.filter += key
		}
		p.cursor = 0
		return nil
	}
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "/":
		p.typing = true
	case "up", "k":
		p.cursor = max(0, p.cursor-1)
	case "down", "j":
		p.cursor = max(0, min(p.cursor+1, len(p.shown())-1))
	case "enter":
		if shown := p.shown(); p.cursor < len(shown) {
			p.picked = shown[p.cursor].Pid
			return tea.Quit
		}
	}
	return nil
}

// View is the whole screen.
func (p *picker) View() tea.View {
	v := tea.NewView(strings.Join(p.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "tslab"
	return v
}

func (p *picker) lines() []string {
	shown := p.shown()
	lines := []string{p.paint.paint(styleTitle, "Which process?")}
	t := table.Table{Head: func(s string) string { return p.paint.paint(styleHead, s) }, Columns: []table.Column{{Title: "command", Left: true}, {Title: "pid"}, {Title: "committed"},
		{Title: "live"}, {Title: "grows/s"}, {Title: "state", Left: true}}}
	room := max(1, p.height-3)
	from := max(0, min(p.cursor-room/2, len(shown)-room))
	for _, r := range shown[from:min(len(shown), from+room)] {
		t.Rows = append(t.Rows, []string{r.Command, fmt.Sprint(r.Pid), r.Committed, r.Live, r.Grows, r.State})
	}
	body := t.Lines(p.width)
	if at := p.cursor - from + 1; at > 0 && at < len(body) {
		body[at] = p.paint.paint(styleCursor, body[at]+strings.Repeat(" ", max(0, p.width-ansi.StringWidth(body[at]))))
	}
	if len(shown) == 0 {
		body = append(body, "No process shows statistics. Start a program with TSLAB_OPTIONS=segment=1, or any program with 'tslab run'.")
	}
	lines = append(lines, body...)
	for len(lines) < p.height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(1, min(len(lines), p.height-1))]
	if p.height > 1 {
		foot := p.paint.paint(styleFaint, "⏎ look into it  ↑↓ move  / filter  q quit")
		if p.typing {
			foot = "/" + p.filter + "▏" + p.paint.paint(styleFaint, "  ⏎ look into it  esc all of them")
		}
		lines = append(lines, foot)
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], p.width, "")
	}
	return lines
}
