// Package testdata has what tests read: a document of stats_dump.
package testdata

import (
	_ "embed"
	"strings"

	"temporal-slab/tslab/internal/snapshot"
)

// Mixed is what `stats_dump --no-text --seconds 1.1` wrote, but for its process id.
//
//go:embed mixed.json
var Mixed string

// Snapshot is Mixed with texts replaced, in pairs.
func Snapshot(replace ...string) *snapshot.Snapshot {
	s, err := snapshot.Parse(strings.NewReader(Edit(replace...)))
	if err != nil {
		panic(err)
	}
	return s
}

// Edit is Mixed with the first place of each text replaced; the texts have to be there.
func Edit(replace ...string) string {
	t := Mixed
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(t, replace[i]) {
			panic("the document has no " + replace[i])
		}
		t = strings.Replace(t, replace[i], replace[i+1], 1)
	}
	return t
}
