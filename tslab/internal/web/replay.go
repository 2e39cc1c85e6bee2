package web

import (
	"time"

	"temporal-slab/tslab/internal/record"
)

// replayed is a watcher that shows a recording as it was at a time, and reads nothing more.
func replayed(word string, c *colours) (*watcher, error) {
	path, when := record.Split(word)
	r, err := record.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	last, err := r.Find(when)
	if err != nil {
		return nil, err
	}
	w := &watcher{pid: max(1, r.Whose.Pid), command: r.Whose.Command, host: r.Whose.Host, replay: true, colours: c, asked: time.Now()}
	first := last
	for first > 0 && r.At(last).Sub(r.At(first-1)) <= coarseKept {
		first--
	}
	step := max(1, (last-first)/mostReplayed)
	for n := first; n <= last; n++ {
		if (last-n)%step != 0 && n != last-1 { // the rates of the last are of the time since the one before
			continue
		}
		snap, err := r.Read(n)
		if err != nil {
			return nil, err
		}
		w.last = w.series.Next(snap)
		w.history.Add(pointOf(w.last, r.At(n), c.of))
	}
	return w, nil
}

// mostReplayed is how many readings of a recording are looked at.
const mostReplayed = 700
