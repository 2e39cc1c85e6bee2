package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"temporal-slab/tslab/internal/testdata"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tslab": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// The scripts are the command line as people use it. They find the document of package testdata as mixed.json, and the
// commands below beside those of testscript.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TSLAB_STATS_DUMP", os.Getenv("TSLAB_STATS_DUMP"))
			return os.WriteFile(filepath.Join(e.WorkDir, "mixed.json"), []byte(testdata.Mixed), 0o644)
		},
		Condition: func(c string) (bool, error) {
			switch c {
			case "stats_dump":
				return os.Getenv("TSLAB_STATS_DUMP") != "", nil
			case "publisher":
				help, err := exec.Command(os.Getenv("TSLAB_STATS_DUMP"), "--help").Output()
				return err == nil && bytes.Contains(help, []byte("--pid")), nil
			case "full":
				_, err := os.Stat("/dev/full")
				return err == nil, nil
			}
			return false, fmt.Errorf("no condition %q", c)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"edit":    edit,
			"fifo":    fifo,
			"json":    isJSON,
			"oneline": oneLineError,
			"huge":    huge,
		},
	})
}

// edit OUT FROM TO...: mixed.json with texts replaced.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(testdata.Edit(args[1:]...)), 0o644))
}

func fifo(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

// huge FILE: 1 GiB that takes no room.
func huge(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(f.Truncate(1 << 30))
	ts.Check(f.Close())
}

// json FILE: every line or the whole is JSON.
func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	for n := 0; ; n++ {
		var v any
		if err := d.Decode(&v); err == io.EOF && n > 0 {
			return
		} else if err != nil {
			ts.Fatalf("%s is no JSON: %v", args[0], err)
		}
	}
}

// oneline: the latest standard error is one line that begins with tslab.
func oneLineError(ts *testscript.TestScript, _ bool, _ []string) {
	text := ts.ReadFile("stderr")
	if !strings.HasPrefix(text, "tslab: ") || strings.Count(text, "\n") != 1 {
		ts.Fatalf("not one line: %q", text)
	}
}

// run is a command line with files for its streams.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	out, errs := open("out"), open("err")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	code = Main(args, null, out, errs)
	a, _ := os.ReadFile(out.Name())
	b, _ := os.ReadFile(errs.Name())
	return code, string(a), string(b)
}

func answering(t *testing.T, fn http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(fn)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // until then nobody watches whether the asker is there
	<-r.Context().Done()
}

// refusing returns the URL of a port at which nobody listens and which nobody else gets while the test runs: it is bound.
func refusing(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

func TestURLs(t *testing.T) {
	closed := refusing(t)
	good := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stats.json" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, testdata.Mixed)
	})
	for _, c := range []struct {
		url, want string
		code      int
	}{
		{good, "temporal-slab", 0},
		{good + "/other", "answered 404 Not Found", 2},
		{answering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, good, http.StatusFound) }), "answered 404", 2},
		{answering(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, good+"/stats.json", http.StatusFound)
		}), "temporal-slab", 0},
		{answering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), "more than 3 redirects", 2},
		{answering(t, silent), "no whole answer within 300ms", 2},
		{answering(t, func(w http.ResponseWriter, r *http.Request) { // begins and goes on for ever
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			silent(w, r)
		}), "no whole answer within 300ms", 2},
		{answering(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") }), "statistics are a JSON object", 2},
		{closed, "connection refused", 2},
		{"ftp://somewhere/x", "--url takes http", 2},
		{"http://", "--url takes http", 2},
		{"http://u:secret@127.0.0.1:1/", "127.0.0.1", 2},
	} {
		timeout := "10s"
		if strings.Contains(c.want, "300ms") {
			timeout = "300ms"
		}
		code, out, errs := run(t, "stats", "--url", c.url, "--timeout", timeout)
		if code != c.code || !strings.Contains(out+errs, c.want) || strings.Contains(errs, "secret") || strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: exit %d, %q %q, wanted %q", c.url, code, out, errs, c.want)
		}
	}
}

func TestPush(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mixed.json")
	if err := os.WriteFile(file, []byte(testdata.Mixed), 0o644); err != nil {
		t.Fatal(err)
	}
	var got, path, method string
	gateway := answering(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, path, method = string(b), r.URL.Path, r.Method
	})
	code, out, errs := run(t, "push", "--file", file, "--gateway", gateway, "--job", "orders", "--instance", "here")
	if code != 0 || method != http.MethodPut || path != "/metrics/job/orders/instance/here" || !strings.Contains(out, "pushed to") {
		t.Errorf("exit %d, %s %s, %q %q", code, method, path, out, errs)
	}
	if !strings.Contains(got, "temporal_slab_label_committed_bytes") {
		t.Errorf("what arrived: %.200q", got)
	}
	closed := refusing(t)
	for _, c := range []struct{ url, want string }{
		{closed, "connection refused"},
		{answering(t, silent), "no answer within 300ms"},
		{answering(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, gateway, http.StatusMovedPermanently)
		}), "redirects to " + gateway},
		{answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for range 1 << 10 { // an answer without end
				fmt.Fprintln(w, strings.Repeat("no ", 1<<10))
			}
		}), "answered 400 Bad Request: no no"},
		{answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotImplemented)
			fmt.Fprint(w, "<!DOCTYPE HTML>")
		}), "answered 501 Not Implemented\n"},
		{"127.0.0.1:9091", "--gateway takes http"},
		{"", "needs --gateway"},
	} {
		timeout := "1m" // a slow machine may take its time
		if strings.Contains(c.want, "300ms") {
			timeout = "300ms"
		}
		code, out, errs := run(t, "push", "--file", file, "--gateway", c.url, "--timeout", timeout)
		if code != 2 || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 || len(errs) > 2000 {
			t.Errorf("%s: exit %d, %q %.300q", c.url, code, out, errs)
		}
	}
}

// startServe serves a file on a free port.
func startServe(t *testing.T, file string, flags ...string) (address string, stop func() error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		a := &app{in: os.Stdin, stdout: w, stderr: io.Discard, out: bufio.NewWriter(w)}
		root := a.root()
		root.SetArgs(append([]string{"serve", "--file", file, "--listen", "127.0.0.1:0", "--json"}, flags...))
		done <- root.ExecuteContext(ctx)
	}()
	var hello struct{ Address string }
	if err := json.NewDecoder(r).Decode(&hello); err != nil {
		t.Fatal(err)
	}
	return hello.Address, func() error {
		cancel()
		return <-done
	}
}

func TestServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mixed.json")
	if err := os.WriteFile(file, []byte(testdata.Mixed), 0o644); err != nil {
		t.Fatal(err)
	}
	address, stop := startServe(t, file, "--stale-after", "0")
	ask := func(method, path, host, accept string) (int, string, http.Header) {
		req, err := http.NewRequest(method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), resp.Header
	}
	for _, c := range []struct {
		method, path, host, accept string
		code                       int
		want                       string
	}{
		{"GET", "/metrics", "", "", 200, "temporal_slab_exporter_up 1"},
		{"GET", "/metrics", "", "application/openmetrics-text", 200, "# EOF"},
		{"GET", "/stats.json", "localhost:1", "", 200, `"schema_version":3`},
		{"GET", "/healthz", "[::1]:80", "", 200, "ok"},
		{"GET", "/", "", "", 200, "/metrics"},
		{"HEAD", "/metrics", "", "", 200, ""},
		{"GET", "/etc/passwd", "", "", 404, ""},
		{"POST", "/metrics", "", "", 405, "GET and HEAD only"},
		{"GET", "/metrics", "evil.example", "", 403, "local"},
	} {
		code, body, head := ask(c.method, c.path, c.host, c.accept)
		if code != c.code || !strings.Contains(body, c.want) || head.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s for %q: %d %.200q", c.method, c.path, c.host, code, body)
		}
		if code == 405 && head.Get("Allow") != "GET, HEAD" {
			t.Error("no Allow")
		}
	}
	strict, stopStrict := startServe(t, file)
	resp, err := http.Get("http://" + strict + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 503 || !strings.HasPrefix(string(b), "the statistics are stale, figures of ") {
		t.Errorf("figures of long ago: %d %q", resp.StatusCode, b)
	}
	if err := stopStrict(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * serveFresh) // longer than an answer counts as new
	if code, body, _ := ask("GET", "/metrics", "", ""); code != 200 || !strings.Contains(body, "temporal_slab_exporter_up 0") || strings.Contains(body, "live_bytes") {
		t.Errorf("a source that broke: %d %.200q", code, body)
	}
	for _, path := range []string{"/healthz", "/stats.json"} {
		if code, body, _ := ask("GET", path, "", ""); code != 503 || !strings.Contains(body, "breaks off") {
			t.Errorf("%s of a source that broke: %d %q", path, code, body)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// Every command teaches: a line, a text, examples that name it.
func TestHelpTeaches(t *testing.T) {
	a := &app{}
	for _, c := range a.root().Commands() {
		if c.Hidden || c.Name() == "export" {
			continue
		}
		if c.Short == "" || len(c.Long) < 60 || !strings.Contains(c.Example, "tslab "+c.Name()) {
			t.Errorf("%s has a poor help", c.Name())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) { // a line of help is read without the one above
			if first, _, _ := strings.Cut(f.Usage, " "); slices.Contains([]string{"of", "the", "which", "what", "with"}, first) && !strings.Contains(f.Usage, ": ") {
				t.Errorf("%s --%s: %q says nothing by itself", c.Name(), f.Name, f.Usage)
			}
		})
		for _, l := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if len([]rune(l)) > 120 {
				t.Errorf("%s: a line of %d characters: %s", c.Name(), len(l), l)
			}
		}
	}
	var b bytes.Buffer
	root := a.root()
	if err := root.GenBashCompletionV2(&b, true); err != nil || b.Len() == 0 {
		t.Error(err)
	}
}
