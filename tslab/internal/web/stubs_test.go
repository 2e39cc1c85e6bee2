package web

import (
	"context"
	"io"

	"temporal-slab/tslab/internal/snapshot"
)

// nothing is a source without documents.
type nothing struct{}

func (nothing) Next(context.Context) (*snapshot.Snapshot, error) { return nil, io.EOF }
func (nothing) Name() string                                     { return "nothing" }
func (nothing) Close() error                                     { return nil }

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
