package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/spf13/cobra"

	"temporal-slab/tslab/internal/prom"
	"temporal-slab/tslab/internal/rates"
	"temporal-slab/tslab/internal/segment"
	"temporal-slab/tslab/internal/snapshot"
)

type pushOptions struct {
	gateway, job, instance string
	every                  time.Duration
	count                  int
}

func (a *app) pushCommand() *cobra.Command {
	var o pushOptions
	c := &cobra.Command{
		Use: "push", Short: "Send the figures to a Prometheus Pushgateway", Args: noArgs,
		Long: `Sends the series of 'tslab export prometheus' to a Pushgateway, and replaces the gateway's series of the same job
and instance. push sends the series once, or repeatedly until interrupted if --every is set. With --every, push
reports a failed push and tries again at the next turn. If the process ends between two pushes, push reports this,
and then pushes the next process of the same user and command line as an instance of its own. A gateway that
redirects is refused, because a redirected push may be lost.`,
		Example: `  tslab push --pid 4711 --gateway http://127.0.0.1:9091
  tslab push --pid 4711 --gateway http://push:9091 --job orders --every 15s
  some_batch_job --stats out.json && tslab push --file out.json --gateway http://push:9091 --job batch`,
		RunE: func(c *cobra.Command, _ []string) error { return a.push(c, o) },
	}
	a.sourceFlags(c)
	f := c.Flags()
	f.StringVar(&o.gateway, "gateway", "", "push to the Pushgateway at http://HOST:PORT")
	f.StringVar(&o.job, "job", "temporal-slab", "set the label 'job'")
	f.StringVar(&o.instance, "instance", "", "set the label 'instance' (default: host and process id, plus the PID namespace if tslab runs in a container)")
	f.DurationVar(&o.every, "every", 0, "push repeatedly, this long apart; 0: once")
	f.IntVarP(&o.count, "count", "n", 0, "with --every: stop after this many pushes; 0: continue until interrupted")
	f.BoolVar(&a.json, "json", false, "print the gateway, job and instance in JSON")
	return c
}

func (o *pushOptions) check() error {
	u, err := url.Parse(o.gateway)
	switch {
	case o.gateway == "":
		return errors.New("push needs --gateway http://HOST:PORT")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Errorf("--gateway takes http://HOST:PORT, not %q", o.gateway)
	case o.job == "":
		return errors.New("--job must not be empty")
	case o.every != 0 && o.every < time.Second:
		return errors.New("--every takes 1s or more")
	case o.count < 0 || (o.count != 0 && o.every == 0):
		return errors.New("--count takes 0 or more, and needs --every")
	}
	return nil
}

func (a *app) push(c *cobra.Command, o pushOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	open := a.open
	if o.every != 0 {
		open = a.openAgain
	}
	src, err := open(c)
	if err != nil {
		return err
	}
	defer src.Close()
	a.interval = o.every
	n, failed := 0, error(nil)
	if o.every != 0 {
		a.ended = func(err error) bool {
			n++
			failed = err
			return n != o.count
		}
	}
	err = a.follow(c.Context(), src, func(i *rates.Interval) (bool, error) {
		n++
		failed = a.pushOne(c.Context(), i.To, o)
		if o.every == 0 {
			return false, failed
		}
		if failed != nil && c.Context().Err() == nil {
			fmt.Fprintf(a.stderr, "tslab: %s\n", said(failed))
		}
		return n != o.count, nil
	})
	if err == nil && failed != nil && c.Context().Err() == nil {
		return fmt.Errorf("the last push failed")
	}
	return err
}

// instance is unique on every host that has a name of its own, containers or not: a process is called by the id that it has
// for its reader. Where that is not the machine's, since tslab runs in the container, the name space of ids is part of it.
func instance(snap *snapshot.Snapshot) string {
	host, _ := os.Hostname()
	name := host + ":" + strconv.FormatUint(snap.Pid(), 10)
	if space := segment.PidSpace(); space != "" {
		name += "@" + space
	}
	return name
}

// errRedirect ends a push whose gateway sends it elsewhere.
var errRedirect = errors.New("redirects")

// brief lets no more of an answer through than fits an error message, and keeps the answer's status.
type brief struct {
	next   http.RoundTripper
	status int
}

func (b *brief) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if resp != nil {
		b.status = resp.StatusCode
	}
	if resp != nil && resp.Body != nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, 512), resp.Body}
	}
	return resp, err
}

// reason is what a gateway says of its refusal, which the client appends to the status; "" for a page of a web server.
func reason(err error) string {
	_, text, _ := strings.Cut(err.Error(), ": ")
	if text = strings.TrimSpace(text); text == "" || text[0] == '<' {
		return ""
	}
	return ": " + text
}

func (a *app) pushOne(ctx context.Context, snap *snapshot.Snapshot, o pushOptions) error {
	ctx, cancel := context.WithTimeout(ctx, a.choice.Timeout)
	defer cancel()
	to := ""
	transport := &brief{next: http.DefaultTransport}
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		to = r.URL.Redacted()
		return errRedirect
	}}
	if o.instance == "" {
		o.instance = instance(snap)
	}
	u, _ := url.Parse(o.gateway)
	err := push.New(o.gateway, o.job).Grouping("instance", o.instance).Client(client).Collector(prom.Collector{Snap: snap}).PushContext(ctx)
	var ue *url.Error
	switch {
	case errors.Is(err, errRedirect):
		return fmt.Errorf("%s redirects to %s; use that address if it is correct", u.Redacted(), to)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer within %s (--timeout)", u.Redacted(), a.choice.Timeout)
	case errors.As(err, &ue):
		return fmt.Errorf("%s: %w", u.Redacted(), ue.Err)
	case err != nil && transport.status != 0:
		return fmt.Errorf("%s: answered %d %s%s", u.Redacted(), transport.status, http.StatusText(transport.status), reason(err))
	case err != nil:
		return err
	}
	if a.json {
		return a.writeJSON(map[string]any{"gateway": u.Redacted(), "job": o.job, "instance": o.instance})
	}
	a.println(fmt.Sprintf("pushed to %s as job %q, instance %q", u.Redacted(), o.job, o.instance))
	return nil
}
