package heap

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// stacks is a profile of samples "label maker value outer;...;inner".
func stacks(t *testing.T, lines ...string) *profile.Profile {
	t.Helper()
	p := &profile.Profile{}
	for _, name := range ValueNames {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "count"})
	}
	known := map[string]*profile.Location{}
	for _, line := range lines {
		words := strings.Fields(line)
		s := &profile.Sample{Value: []int64{0, 0, 1, int64(len(words[2]))}, Label: map[string][]string{"label": {words[0]}}}
		if words[1] != "-" {
			s.Label["maker"] = []string{words[1]}
		}
		names := strings.Split(words[3], ";")
		for k := len(names) - 1; k >= 0; k-- {
			l := known[names[k]]
			if l == nil {
				f := &profile.Function{ID: uint64(len(known) + 1), Name: names[k]}
				l = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
				p.Function, p.Location = append(p.Function, f), append(p.Location, l)
				known[names[k]] = l
			}
			s.Location = append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func shape(n *Node) string {
	text := n.Name + "=" + strings.Repeat("x", int(n.Value))
	if len(n.Children) != 0 {
		var words []string
		for _, c := range n.Children {
			words = append(words, shape(c))
		}
		text += "(" + strings.Join(words, " ") + ")"
	}
	return text
}

func TestTree(t *testing.T) {
	p := stacks(t, "a - xx main;f;g", "a - x main;f", "b a xxxx main;h", "a - x main;k")
	if got, want := shape(Tree(p, InuseSpace, Only{})), "all=xxxxxxxx(a=xxxx(main=xxxx(f=xxx(g=xx) k=x)) b=xxxx(made by a=xxxx(main=xxxx(h=xxxx))))"; got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	label := "a"
	if got, want := shape(Tree(p, InuseObjects, Only{Label: &label})), "all=xxx(a=xxx(main=xxx(f=xx(g=x) k=x)))"; got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

func TestSmallBoxesArePutTogether(t *testing.T) {
	lines := []string{"a - " + strings.Repeat("x", 100000) + " main;big"}
	for n := range 60 {
		lines = append(lines, "a - x main;small"+strings.Repeat("y", n))
	}
	main := Tree(stacks(t, lines...), InuseSpace, Only{}).Children[0].Children[0]
	if len(main.Children) != 2 || main.Children[1].Name != "(60 small ones)" || main.Children[1].Value != 60 {
		t.Errorf("%d boxes", len(main.Children))
	}
}

func TestCompare(t *testing.T) {
	a := Sum(stacks(t, "a - xx main;f", "b - xxx main;g", "same - x main;s"), InuseSpace, Only{})
	b := Sum(stacks(t, "a - xxxxx main;f", "c - x main;h", "same - x main;s"), InuseSpace, Only{})
	labels, functions := Compare(a, b, InuseSpace)
	if len(labels) != 3 || labels[0] != (Change{"a", "", 2, 5, 0}) || labels[1] != (Change{"c", "", 0, 1, 0}) || labels[2] != (Change{"b", "", 3, 0, 0}) {
		t.Errorf("%+v", labels)
	}
	if functions[0] != (Change{"f", "", 2, 5, 3}) || functions[len(functions)-1] != (Change{"g", "", 3, 0, -3}) {
		t.Errorf("%+v", functions)
	}
	for _, f := range functions {
		if f.Name == "s" {
			t.Error("what has not changed is shown")
		}
	}
	p, err := Difference(stacks(t, "a - xx main;f"), stacks(t, "a - xxxxx main;f"))
	if err != nil || len(p.Sample) != 1 || p.Sample[0].Value[InuseSpace] != 3 {
		t.Error(err, p)
	}
}

// The page holds all that it needs, and what a program has called its labels and functions does no harm in it.
func TestFlamePage(t *testing.T) {
	var b bytes.Buffer
	evil := `</script><script>alert(1)</script>`
	tree := &Node{Name: "all", Value: 3, Children: []*Node{{Name: evil, Value: 3}}}
	if err := Flame(&b, tree, evil+`"`, "bytes"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, evil) || strings.Count(page, "<script>") != 1 || strings.Count(page, "</script>") != 1 {
		t.Error("a name is markup")
	}
	if found := regexp.MustCompile(`(?i)(src|href)=|https?:|@import|url\(`).FindString(page); found != "" {
		t.Error("the page asks for", found)
	}
	if !strings.Contains(page, `unit = "bytes"`) || !strings.Contains(page, `"v":3`) {
		t.Error("the page has no tree")
	}
}
