// Rows of a batch outside of Go's heap, by cgo: the collector does not scan them, and the end of the batch returns them all at once.
//
// Go moves goroutines between threads, so phases are named at each call and no thread enters one. What is in C's memory holds no Go
// pointer. A call of C costs more than an allocation, so objects come many at a time: a slice of rows, not a row.
//
//	CGO_ENABLED=1 go run .     exit status 1 when what it claims does not hold
package main

/*
#cgo pkg-config: temporal-slab
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

// Phase is what a batch lives in. Any goroutine may allocate in it; one ends it, when the others are done.
type Phase struct{ domain *C.epoch_domain_t }

// Begin opens a phase of the label, of which 31 bytes count.
func Begin(a *C.SlabAllocator, label string) (Phase, error) {
	text := C.CString(label)
	defer C.free(unsafe.Pointer(text))
	d := C.epoch_domain_create_labeled(a, text)
	if d == nil {
		// The reason is the thread's, and the goroutine may have moved since: errno came with the call, the sentence may not have.
		return Phase{}, errors.New("no phase could be opened")
	}
	return Phase{d}, nil
}

// plain is what may lie outside of Go's heap: values without pointers.
type plain interface {
	Row | ~byte | ~int32 | ~int64 | ~float64
}

// Slice makes n values of zeros in the phase. It is valid until End, and nothing tells of a use after that.
func Slice[T plain](p Phase, n int) ([]T, error) {
	var zero T
	at := C.epoch_domain_calloc(p.domain, C.size_t(n), C.size_t(unsafe.Sizeof(zero)))
	if at == nil {
		return nil, fmt.Errorf("no memory for %d values", n)
	}
	return unsafe.Slice((*T)(at), n), nil
}

// End ends the phase with everything in it.
func (p Phase) End() (C.EpochReceipt, error) {
	var r C.EpochReceipt
	if !C.epoch_domain_destroy_ex(p.domain, &r) {
		return r, errors.New("the phase has ended already")
	}
	return r, nil
}

// Row is a row of a batch.
type Row struct {
	ID    int64
	Price float64
	Name  [16]byte
}

const rows, parts = 1000, 8

// batch has its parts filled by goroutines, on whatever threads.
func batch(a *C.SlabAllocator, number int) (sum float64, r C.EpochReceipt, err error) {
	p, err := Begin(a, fmt.Sprintf("batch %d", number%4))
	if err != nil {
		return 0, r, err
	}
	var made [parts][]Row
	var errs [parts]error
	var all sync.WaitGroup
	for part := range made {
		part := part
		all.Add(1)
		go func() {
			defer all.Done()
			table, err := Slice[Row](p, rows)
			for n := range table {
				table[n].ID = int64(part*rows + n)
				table[n].Price = float64(number)
			}
			made[part], errs[part] = table, err
			runtime.Gosched()
		}()
	}
	all.Wait()
	for _, table := range made {
		for n := range table {
			sum += table[n].Price
		}
	}
	r, err = p.End()
	return sum, r, errors.Join(append(errs[:], err)...)
}

func main() {
	a := C.slab_allocator_create()
	if a == nil {
		fmt.Fprintln(os.Stderr, "no allocator")
		os.Exit(2)
	}
	const batches = 100
	var wrong, released int
	var lock sync.Mutex
	var all sync.WaitGroup
	for n := 0; n < batches; n++ {
		n := n
		all.Add(1)
		go func() {
			defer all.Done()
			sum, r, err := batch(a, n)
			lock.Lock()
			defer lock.Unlock()
			released += int(r.objects_released)
			if err != nil || sum != float64(n*rows*parts) || r.objects_escaped != 0 {
				fmt.Fprintln(os.Stderr, "batch", n, sum, err)
				wrong++
			}
		}()
	}
	all.Wait()
	var stats C.SlabGlobalStats
	C.slab_stats_global(a, &stats)
	fmt.Printf("%d batches, %d slices released, %d live, %d things wrong\n", batches, released, int(stats.live_objects), wrong)
	C.slab_allocator_free(a)
	if wrong != 0 || released != batches*parts || stats.live_objects != 0 {
		os.Exit(1)
	}
}
