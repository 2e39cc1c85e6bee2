//go:build pictures

package screen

// Writes every screen in some sizes as text, for people to look at:
//
//	TSLAB_SCREENS=/somewhere go test -tags pictures -run TestPictures ./internal/screen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPictures(t *testing.T) {
	dir := os.Getenv("TSLAB_SCREENS")
	for _, wh := range [][2]int{{80, 24}, {40, 10}, {1, 1}, {120, 30}, {500, 50}} {
		for _, tab := range tabs {
			text := strings.Join(size(testModel(t, tab), wh[0], wh[1]), "\n")
			name := fmt.Sprintf("%s-%dx%d.txt", tab, wh[0], wh[1])
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
