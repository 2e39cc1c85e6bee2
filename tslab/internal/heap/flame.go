package heap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"

	_ "embed"

	"github.com/google/pprof/profile"
)

// Node is a box of a flame graph: what a function allocated, and all that it called. The root's children are labels.
type Node struct {
	Name     string  `json:"n"`
	Value    int64   `json:"v"`
	Children []*Node `json:"c,omitempty"`
	by       map[string]*Node
}

const (
	flameShare = 2000 // boxes of less than one in so many of the whole are put together
	flameDepth = 128
)

// Tree sums the stacks of a profile up under their labels, the outermost function first.
func Tree(p *profile.Profile, value int, only Only) *Node {
	root := &Node{Name: "all"}
	for _, s := range p.Sample {
		v := s.Value[value]
		l := Label{Name: tag(s, "label"), Maker: tag(s, "maker")}
		if v <= 0 || !only.Has(&l) {
			continue
		}
		root.Value += v
		at := root.child(orUnlabeled(l.Name), v)
		if l.Maker != "" {
			at = at.child("made by "+l.Maker, v)
		}
		depth := 0
		for i := len(s.Location) - 1; i >= 0 && depth < flameDepth; i-- {
			names := namesOf(s.Location[i])
			for k := len(names) - 1; k >= 0; k-- { // inlined ones stand inside
				at, depth = at.child(names[k], v), depth+1
			}
		}
	}
	root.tidy(root.Value / flameShare)
	return root
}

func orUnlabeled(name string) string {
	if name == "" {
		return "(unlabeled)"
	}
	return name
}

func (n *Node) child(name string, v int64) *Node {
	c := n.by[name]
	if c == nil {
		c = &Node{Name: name}
		if n.by == nil {
			n.by = map[string]*Node{}
		}
		n.by[name] = c
		n.Children = append(n.Children, c)
	}
	c.Value += v
	return c
}

// tidy puts the largest first and what is below `least` together.
func (n *Node) tidy(least int64) {
	slices.SortFunc(n.Children, func(a, b *Node) int { return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name)) })
	small := &Node{}
	keep := 0
	for _, c := range n.Children {
		if c.Value >= least {
			c.tidy(least)
			n.Children[keep] = c
			keep++
			continue
		}
		small.Value += c.Value
	}
	if count := len(n.Children) - keep; count != 0 {
		small.Name = fmt.Sprintf("(%d small ones)", count)
		n.Children = append(n.Children[:keep], small)
	}
}

//go:embed flame.html
var flamePage string

var flameTemplate = template.Must(template.New("flame").Parse(flamePage))

// Flame writes a page of its own that draws a tree; it needs nothing else.
func Flame(w io.Writer, root *Node, title, unit string) error {
	b, err := json.Marshal(root)
	if err != nil {
		return err
	}
	return flameTemplate.Execute(w, map[string]any{"Title": title, "Unit": unit, "Tree": template.JS(b)}) // Marshal leaves no < or &
}

// Change is what a row of two profiles has in each.
type Change struct {
	Name          string
	Maker         string
	Before, After int64
	Cum           int64 // change with all that it called
}

// Compare are the labels and functions of two profiles, what has grown most first; those that are the same in both are left out.
func Compare(a, b *Report, value int) (labels, functions []Change) {
	type key struct{ name, maker string }
	all := map[key]*Change{}
	of := func(name, maker string) *Change {
		c := all[key{name, maker}]
		if c == nil {
			c = &Change{Name: name, Maker: maker}
			all[key{name, maker}] = c
		}
		return c
	}
	for _, l := range a.Labels {
		of(l.Name, l.Maker).Before += l.Values[value]
	}
	for _, l := range b.Labels {
		of(l.Name, l.Maker).After += l.Values[value]
	}
	sorted := func() []Change {
		var list []Change
		for _, c := range all {
			if c.Before != c.After || c.Cum != 0 {
				list = append(list, *c)
			}
		}
		slices.SortFunc(list, func(x, y Change) int {
			return cmp.Or(cmp.Compare(y.After-y.Before, x.After-x.Before), cmp.Compare(y.Cum, x.Cum), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Maker, y.Maker))
		})
		return list
	}
	labels = sorted()
	clear(all)
	for _, f := range a.Functions {
		c := of(f.Name, "")
		c.Before, c.Cum = c.Before+f.Flat, c.Cum-f.Cum
	}
	for _, f := range b.Functions {
		c := of(f.Name, "")
		c.After, c.Cum = c.After+f.Flat, c.Cum+f.Cum
	}
	return labels, sorted()
}

// Difference is a profile of what came between two: pprof shows what has gone as negative.
func Difference(a, b *profile.Profile) (*profile.Profile, error) {
	base := a.Copy()
	base.Scale(-1)
	for _, p := range []*profile.Profile{base, b} {
		if p.PeriodType == nil || p.PeriodType.Type == "" { // Merge looks into it
			p.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
		}
	}
	return profile.Merge([]*profile.Profile{b, base})
}
