package source

import (
	"context"
	"io"
	"os"
	"syscall"

	"temporal-slab/tslab/internal/record"
	"temporal-slab/tslab/internal/snapshot"
)

// replay gives the readings of a recording from a time on.
type replay struct {
	r    *record.Reader
	next int
	path string
}

func openReplay(word string) (Source, error) {
	path, when := record.Split(word)
	r, err := record.Open(path)
	if err != nil {
		return nil, err
	}
	n, err := r.Find(when)
	if err != nil {
		r.Close()
		return nil, err
	}
	return &replay{r, n, path}, nil
}

func (p *replay) Name() string { return p.path }
func (p *replay) Close() error { return p.r.Close() }

func (p *replay) Next(context.Context) (*snapshot.Snapshot, error) {
	if p.next >= p.r.Len() {
		return nil, io.EOF
	}
	p.next++
	return p.r.Read(p.next - 1)
}

func isRecording(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && record.Is(f)
}

func readRecording(path, when string) (*snapshot.Snapshot, error) {
	r, err := record.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	n, err := r.Find(when)
	if err != nil {
		return nil, err
	}
	return r.Read(n)
}
