package cli

// record: what a process says of itself, kept in a file for later.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/record"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
	"temporal-slab/tslab/internal/source"
	"temporal-slab/tslab/internal/units"
)

func (a *app) recordCommand() *cobra.Command {
	out, most, last := "", int64(64), time.Duration(0)
	c := &cobra.Command{
		Use: "record -o FILE", Short: "Record the statistics of a process in a file, to view any moment later", Args: noArgs,
		Long: `Reads a process repeatedly and writes each new publication to a file, until record is interrupted, the process ends,
or the time --for is over. With --replay FILE@TIME, the commands top, doctor, stats, watch and web read the
recording as if it were that time. 'tslab diff FILE@TIME FILE@TIME' compares two times.

TIME is a time of day (14:05, 14:05:30), a date and time, +90s after the start, -2m before the end, start or end.

The file stays below --max-mib. When the file is full, record deletes every other reading and then takes half as
many, so the recording always spans the whole time. If record is killed, what it has written can still be read.`,
		Example: `  tslab record --pid 4711 -o night.rec
  tslab record --name server -o night.rec --interval 10s --for 8h
  tslab doctor --replay night.rec@03:20
  tslab diff night.rec@start night.rec@end
  tslab web --replay night.rec@03:20`,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case out == "":
				return errors.New("record needs -o FILE")
			case most < 1 || most > 1<<20:
				return errors.New("--max-mib takes a number from 1 to 1048576")
			case last < 0:
				return errors.New("--for takes 0 (until interrupted) or more")
			case a.choice.File != "" || a.choice.Stdin || a.choice.Replay != "":
				return errors.New("record takes a process or a web server: one of --pid, --name, --url")
			}
			src, err := a.openFollowing(c)
			if err != nil {
				return err
			}
			defer src.Close()
			return a.record(c.Context(), src, out, most<<20, last)
		},
	}
	a.sourceFlags(c)
	a.intervalFlag(c)
	c.Flags().StringVarP(&out, "output", "o", "", "write to this file, replacing its contents")
	c.Flags().Int64Var(&most, "max-mib", most, "keep the file below this many MiB")
	c.Flags().DurationVar(&last, "for", 0, "stop after this time; 0: continue until interrupted")
	_ = c.MarkFlagFilename("output")
	return c
}

func (a *app) record(ctx context.Context, src source.Source, path string, most int64, last time.Duration) error {
	begin := time.Now()
	over := func() bool { return last != 0 && time.Since(begin) >= last }
	next := func() (*snapshot.Snapshot, error) { // the next reading; of a process that is followed, the next one's if need be
		for {
			snap, err := src.Next(ctx)
			if !errors.Is(err, segment.ErrEnded) || a.choice.Again == nil || over() || !a.pause(ctx) {
				return snap, err
			}
		}
	}
	snap, err := next()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	whose := record.Whose{Pid: int(snap.Pid()), Command: src.Name(), Host: host}
	if a.choice.PidSet || a.choice.Name != "" {
		whose.Command = segment.Command(whose.Pid)
	}
	w, err := record.Create(path, whose, most)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "tslab: recording %s into %s; press Ctrl-C to stop\n", src.Name(), units.Text(path))
	kept, why := 0, "interrupted"
	var before *snapshot.Snapshot
	for err == nil {
		if !rates.Same(before, snap) || before.State != snap.State {
			if err = w.Add(snap, time.Now()); err != nil {
				break
			}
			kept++
			before = snap
		}
		if over() {
			why = "the time is over"
			break
		}
		if !a.pause(ctx) {
			break
		}
		snap, err = next()
		switch {
		case ctx.Err() != nil:
			err = nil
		case errors.Is(err, segment.ErrEnded) && a.choice.Again != nil:
			why, err = "the time is over", io.EOF
		case errors.Is(err, segment.ErrEnded) || err == io.EOF:
			why, err = "the process has ended", io.EOF
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	readings := "readings"
	if kept == 1 {
		readings = "reading"
	}
	a.println(fmt.Sprintf("%s: %d %s in %s, %s of %s; look: tslab doctor --replay %s@end", why, kept, readings,
		units.Duration(time.Since(begin)), units.Bytes(uint64(w.Size())), units.Text(path), units.Text(path)))
	return nil
}
