// Package record keeps what a process said of itself over time in a file, and reads it back.
//
// A recording is a line that says what it is, then frames: each a head of 36 bytes and a document of slab_stats_json, packed
// by gzip. The first frame says whose it is. A frame is written in one piece, so a recorder that is killed leaves whole frames and
// at most the beginning of one, which readers leave alone. A recording that has reached its bound is thinned: every second frame goes,
// and from then on half as many are taken, so it always spans all of the time. Thinning makes a new file and renames it.
//
//	head   magic "TSFR", version 1, length of what follows (uint32 each), time in nanoseconds since 1970, age of the figures
//	       in nanoseconds (uint64; all ones: not known), state (uint32), 4 bytes of 0; little endian
package record

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"time"

	"temporal-slab/tslab/internal/snapshot"
)

const (
	first     = "tslab recording 1\n"
	magic     = "TSFR"
	version   = 1
	headBytes = 36
	// MaxFrame is more than any packed document has.
	MaxFrame = 64 << 20
	// LeastBytes is the least bound of a recording.
	LeastBytes = 1 << 20
	unknownAge = math.MaxUint64
	maxFrames  = 1 << 20
)

// Whose is what the first frame says.
type Whose struct {
	Pid     int    `json:"pid"`
	Command string `json:"command"`
	Host    string `json:"host"`
}

func frame(at time.Time, age uint64, state snapshot.State, body []byte) []byte {
	b := make([]byte, 0, headBytes+len(body))
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint64(b, uint64(at.UnixNano()))
	b = binary.LittleEndian.AppendUint64(b, age)
	b = binary.LittleEndian.AppendUint32(b, uint32(state))
	b = append(b, 0, 0, 0, 0)
	return append(b, body...)
}

func pack(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := errors.Join(write(z), z.Close())
	return b.Bytes(), err
}

// Writer makes a recording.
type Writer struct {
	path  string
	f     *os.File
	most  int64
	size  int64
	whose []byte // the first line and frame
	skip  int    // of so many readings one is kept
	turn  int
}

// Create begins a recording of at most so many bytes in a new file, or in place of an old one.
func Create(path string, whose Whose, most int64) (*Writer, error) {
	if most < LeastBytes {
		return nil, fmt.Errorf("a recording needs at least %d bytes", LeastBytes)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s: is not a regular file", path)
	}
	w := &Writer{path: path, f: f, most: most, skip: 1}
	body, err := pack(func(z io.Writer) error { return json.NewEncoder(z).Encode(whose) })
	if err == nil {
		w.whose = append([]byte(first), frame(time.Now(), unknownAge, snapshot.Unknown, body)...)
		err = w.put(w.whose)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (w *Writer) put(b []byte) error {
	n, err := w.f.Write(b)
	w.size += int64(n)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, plain(err))
	}
	return nil
}

// Add takes a reading; where the recording has been thinned, some are left out.
func (w *Writer) Add(s *snapshot.Snapshot, at time.Time) error {
	w.turn++
	if (w.turn-1)%w.skip != 0 {
		return nil
	}
	body, err := pack(s.WriteJSON)
	if err != nil {
		return err
	}
	age := uint64(unknownAge)
	if d, ok := s.Old(); ok {
		age = uint64(d)
	}
	b := frame(at, age, s.State, body)
	if w.size+int64(len(b)) > w.most {
		if err := w.thin(); err != nil {
			return err
		}
		if (w.turn-1)%w.skip != 0 {
			return nil
		}
		if w.size+int64(len(b)) > w.most {
			return fmt.Errorf("%s: a document of %d bytes does not fit into a recording of %d", w.path, len(b), w.most)
		}
	}
	return w.put(b)
}

// thin leaves every second frame out.
func (w *Writer) thin() error {
	r, err := Open(w.path)
	if err != nil {
		return err
	}
	defer r.Close()
	part := w.path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", part, plain(err))
	}
	old := w.f
	w.f, w.size = f, 0
	err = w.put(w.whose)
	for n := 0; n < len(r.frames) && err == nil; n += 2 {
		var b []byte
		if b, err = r.raw(r.frames[n]); err == nil {
			err = w.put(b)
		}
	}
	if err == nil {
		err = os.Rename(part, w.path)
	}
	if err != nil {
		f.Close()
		os.Remove(part)
		w.f = old
		return err
	}
	w.skip *= 2
	return old.Close()
}

// Size is how many bytes it has; Skip, of how many readings one is kept.
func (w *Writer) Size() int64 { return w.size }
func (w *Writer) Skip() int   { return w.skip }

// Close ends it.
func (w *Writer) Close() error {
	if err := w.f.Close(); err != nil {
		return fmt.Errorf("%s: %w", w.path, plain(err))
	}
	return nil
}

// ---- reading ----

type place struct {
	at     time.Time
	age    uint64
	state  snapshot.State
	offset int64
	length int
}

// Reader is a recording that is open.
type Reader struct {
	Whose  Whose
	path   string
	f      *os.File
	frames []place
}

// Is says whether a file begins like a recording.
func Is(f io.ReaderAt) bool {
	b := make([]byte, len(first))
	n, _ := f.ReadAt(b, 0)
	return n == len(b) && string(b) == first
}

// Open finds the frames of a recording. What is behind the last whole one is left alone: a recorder was killed there.
func Open(path string) (*Reader, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	r := &Reader{path: path, f: f}
	if err := r.index(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *Reader) index() error {
	info, err := r.f.Stat()
	switch {
	case err != nil:
		return plain(err)
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case !Is(r.f):
		return errors.New("is not a recording made by tslab record")
	}
	offset := int64(len(first))
	var head [headBytes]byte
	for {
		if _, err := r.f.ReadAt(head[:], offset); err != nil {
			break // the end, or the beginning of a head
		}
		length := binary.LittleEndian.Uint32(head[8:])
		if string(head[:4]) != magic || binary.LittleEndian.Uint32(head[4:]) != version || length > MaxFrame {
			return fmt.Errorf("is damaged at byte %d", offset)
		}
		if offset+headBytes+int64(length) > info.Size() || len(r.frames) >= maxFrames {
			break
		}
		ns := binary.LittleEndian.Uint64(head[12:])
		if ns > math.MaxInt64 {
			return fmt.Errorf("is damaged at byte %d", offset)
		}
		p := place{time.Unix(0, int64(ns)), binary.LittleEndian.Uint64(head[20:]), snapshot.State(min(binary.LittleEndian.Uint32(head[28:]), uint32(snapshot.Ended))), offset, int(length)}
		if offset == int64(len(first)) {
			if err := r.whose(p); err != nil {
				return err
			}
		} else {
			r.frames = append(r.frames, p)
		}
		offset += headBytes + int64(length)
	}
	if len(r.frames) == 0 {
		return errors.New("contains no reading: tslab record ended before the first one")
	}
	return nil
}

func (r *Reader) raw(p place) ([]byte, error) {
	b := make([]byte, headBytes+p.length)
	_, err := r.f.ReadAt(b, p.offset)
	return b, err
}

func (r *Reader) body(p place, most int64) (io.Reader, error) {
	b, err := r.raw(p)
	if err != nil {
		return nil, plain(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b[headBytes:]))
	if err != nil {
		return nil, fmt.Errorf("is damaged at byte %d", p.offset)
	}
	return io.LimitReader(z, most), nil
}

func (r *Reader) whose(p place) error {
	body, err := r.body(p, 1<<20)
	if err == nil && json.NewDecoder(body).Decode(&r.Whose) != nil {
		err = errors.New("does not name its process")
	}
	return err
}

// Len is how many readings it has; At, of when one is.
func (r *Reader) Len() int           { return len(r.frames) }
func (r *Reader) At(n int) time.Time { return r.frames[n].at }

// Read is one reading.
func (r *Reader) Read(n int) (*snapshot.Snapshot, error) {
	p := r.frames[n]
	body, err := r.body(p, snapshot.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	s, err := snapshot.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: the reading of %s: %w", r.path, p.at.Format(time.DateTime), err)
	}
	s.Recorded, s.State, s.Process, s.Origin = p.at, p.state, r.Whose.Pid, r.path
	if p.age != unknownAge {
		s.Aged, s.Age = true, snapshot.Nanoseconds(p.age)
	}
	return s, nil
}

// Close lets go of the file.
func (r *Reader) Close() error { return r.f.Close() }

// Find is the reading at a time: the last that is not after it. The time is "" or "end", "start", a time of day or a date with
// one, or how long after the first reading (+90s) or before the last (-2m).
func (r *Reader) Find(when string) (int, error) {
	last := len(r.frames) - 1
	var at time.Time
	switch {
	case when == "" || when == "end":
		return last, nil
	case when == "start":
		return 0, nil
	case when[0] == '+' || when[0] == '-':
		d, err := time.ParseDuration(when)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time: write +90s for a time after the start, -2m for a time before the end", when)
		}
		at = r.frames[0].at.Add(d)
		if when[0] == '-' {
			at = r.frames[last].at.Add(d)
		}
	default:
		var ok bool
		if at, ok = r.clock(when); !ok {
			return 0, fmt.Errorf("%q is not a time: write 14:05, 14:05:30, 2026-01-31T14:05:30, +90s, -2m, start or end", when)
		}
	}
	if at.Before(r.frames[0].at.Truncate(time.Second)) || at.After(r.frames[last].at.Add(time.Minute)) {
		return 0, fmt.Errorf("the recording is from %s to %s; %s is not in it", r.frames[0].at.Format(time.DateTime), r.frames[last].at.Format(time.DateTime), at.Format(time.DateTime))
	}
	n := 0
	for n < last && !r.frames[n+1].at.After(at) {
		n++
	}
	return n, nil
}

// clock reads a date and time, or a time of day: of the day on which the recording was then.
func (r *Reader) clock(when string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, when, time.Local); err == nil {
			return t, true
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		t, err := time.Parse(layout, when)
		if err != nil {
			continue
		}
		from := r.frames[0].at.Local()
		for day := range 2 {
			at := time.Date(from.Year(), from.Month(), from.Day()+day, t.Hour(), t.Minute(), t.Second(), 0, time.Local)
			if !at.Before(from.Truncate(time.Second)) {
				return at, true
			}
		}
		return time.Date(from.Year(), from.Month(), from.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local), true
	}
	return time.Time{}, false
}

// Split takes FILE@TIME apart; a file whose name has an @ in it is meant when there is one of the whole name.
func Split(word string) (path, when string) {
	if _, err := os.Stat(word); err == nil {
		return word, ""
	}
	if n := strings.LastIndexByte(word, '@'); n > 0 {
		return word[:n], word[n+1:]
	}
	return word, ""
}
