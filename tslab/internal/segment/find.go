package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"temporal-slab/tslab/internal/options"
	"temporal-slab/tslab/internal/snapshot"
)

const maxFds = 1 << 20

// kind is one of the two files that a process shows: both have the same header and the same directory of slots.
type kind struct {
	memfd, file string // the text of its link: /memfd:NAME, or FOLDER/FILE.PID.NUMBER
	magic       string
	rows        bool // has scopes and metrics
}

var (
	statistics = &kind{"temporal-slab", "segment.", "TSLABSEG", true}
	profiles   = &kind{"tslab-profile", "profile.", "TSLABPRF", false}
)

// linked says whether a descriptor whose link reads like that may be one.
func (k *kind) linked(to string) bool {
	if name, ok := strings.CutPrefix(to, "/memfd:"); ok {
		return strings.TrimSuffix(name, " (deleted)") == k.memfd
	}
	return strings.Contains(filepath.Dir(to), "/temporal-slab") && strings.HasPrefix(filepath.Base(to), k.file)
}

// identity is what tells a process from all others that ever had its id.
type identity struct {
	pid             int
	innerPid, start uint64
	boot            string
	owner           uint32
	stopped         bool
}

func (who *identity) state() snapshot.State {
	if who.stopped {
		return snapshot.Stopped
	}
	return snapshot.Running
}

func identify(pid int) (identity, error) {
	who := identity{pid: pid, innerPid: uint64(pid)}
	dir := "/proc/" + strconv.Itoa(pid)
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return who, err
	}
	who.owner = st.Uid
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return who, err
	}
	end := strings.LastIndexByte(string(stat), ')') // the name of the program may hold anything
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 20 {
		return who, fmt.Errorf("%s/stat is not as expected", dir)
	}
	if who.start, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return who, err
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return who, fs.ErrNotExist
	}
	who.stopped = fields[0] == "T" || fields[0] == "t"
	status, _ := os.ReadFile(dir + "/status")
	for line := range strings.Lines(string(status)) {
		if ids := strings.Fields(line); len(ids) > 1 && ids[0] == "NSpid:" {
			if v, err := strconv.ParseUint(ids[len(ids)-1], 10, 64); err == nil {
				who.innerPid = v
			}
		}
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	who.boot = strings.TrimSpace(string(boot))
	return who, nil
}

// Attach finds the segment of a process.
func Attach(pid int) (*Segment, error) {
	g, err := attach(pid, statistics)
	var other *foreign
	if errors.As(err, &other) {
		err = fmt.Errorf("pid %d: shows no statistics of its own; it reads those of pid %d", pid, other.pid)
	}
	if g == nil && err == nil {
		err = fmt.Errorf("pid %d: shows no statistics; start it with TSLAB_OPTIONS=segment=1 (or SlabOptions.segment)%s", pid, ignored(pid))
	}
	return g, err
}

// ignored says which words of its TSLAB_OPTIONS the process ignores; "" when there are none.
func ignored(pid int) string {
	words := options.OfProcess(pid)
	if len(words) == 0 {
		return ""
	}
	return "; ignored in its TSLAB_OPTIONS: " + strings.Join(words, "; ")
}

// Ignoring is a process that ignores words of its TSLAB_OPTIONS.
type Ignoring struct {
	Pid     int
	Command string
	Words   []string
}

// ListIgnoring finds the processes that were started with words in TSLAB_OPTIONS that the library ignores, whether they
// show statistics or not, as far as this user may read their environment.
func ListIgnoring() []Ignoring {
	entries, _ := os.ReadDir("/proc")
	var list []Ignoring
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if words := options.OfProcess(pid); len(words) != 0 {
			list = append(list, Ignoring{pid, command(pid), words})
		}
	}
	slices.SortFunc(list, func(a, b Ignoring) int { return a.Pid - b.Pid })
	return list
}

// attach is nil without error when the process shows nothing of the kind.
func attach(pid int, k *kind) (*Segment, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("--pid takes the id of a process, not %d", pid)
	}
	who, err := identify(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("pid %d: there is no such process", pid)
	case err != nil:
		return nil, fmt.Errorf("pid %d: %w", pid, err)
	}
	g, err := find(who, k)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("pid %d: not yours to read (it belongs to user %d; be that user or root)", pid, who.owner)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("pid %d: there is no such process", pid)
	case err != nil:
		return nil, fmt.Errorf("pid %d: %w", pid, err)
	}
	return g, nil
}

// find looks at everything the process keeps open. nil without error when nothing there is of the kind; else the reason
// why what looked like it is not.
func find(who identity, k *kind) (*Segment, error) {
	dir := fmt.Sprintf("/proc/%d/fd", who.pid)
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var reason error
	for seen := 0; seen < maxFds; {
		names, err := d.Readdirnames(1024)
		if err != nil || len(names) == 0 {
			break
		}
		seen += len(names)
		for _, name := range names {
			link := filepath.Join(dir, name)
			to, err := os.Readlink(link)
			if err != nil {
				continue
			}
			if !k.linked(to) {
				continue
			}
			if where := slowDisk(who.pid, name); where != "" {
				reason = bad("what is called %s lies on %s and is not looked at", filepath.Base(to), where)
				continue
			}
			g, err := open(link, who, k)
			if err == nil {
				return g, nil
			}
			if reason == nil || !errors.As(err, new(*foreign)) {
				reason = err
			}
		}
	}
	return nil, reason
}

// slowDisk is the kind of the file system that an open file of a process lies on, if even a look at it may wait for
// somebody else for ever. It is found without touching the file, and without believing what its link reads: a file of any
// file system can be called like a memfd when it lies at the top of one that is mounted nowhere any more.
func slowDisk(pid int, fd string) string {
	info, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, fd))
	mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	return slowMount(string(info), string(mounts), memoryMount())
}

func mountOf(info string) string {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// memoryMount is the mount that all memfds lie on, the kernel's own, which no list has; "" when this kernel does not say.
var memoryMount = sync.OnceValue(func() string {
	fd, err := unix.MemfdCreate("tslab", unix.MFD_CLOEXEC)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	return mountOf(string(info))
})

func slowMount(info, mounts, memory string) string {
	mount := mountOf(info)
	if memory != "" && mount == memory {
		return ""
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		words, kinds := strings.Fields(before), strings.Fields(after)
		if len(words) == 0 || len(kinds) == 0 || words[0] != mount {
			continue
		}
		for _, slow := range []string{"fuse", "nfs", "cifs", "smb", "ceph", "afs", "9p", "autofs"} {
			if strings.HasPrefix(kinds[0], slow) {
				return kinds[0]
			}
		}
		return ""
	}
	if memory == "" { // a kernel that tells no mounts, or has no memfds
		return ""
	}
	return "a mount that the process does not list"
}

// open looks before it opens: to open a FIFO would block, and a device might do anything.
func open(link string, who identity, k *kind) (*Segment, error) {
	var st unix.Stat_t
	if err := unix.Stat(link, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, bad("what is called like a segment there is no regular file")
	}
	fd, err := unix.Open(link, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), link)
	if err = unix.Fstat(fd, &st); err == nil {
		err = acceptable(&st, who)
	}
	var g *Segment
	if err == nil {
		g, err = load(f, who, k)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return g, nil
}

func acceptable(st *unix.Stat_t, who identity) error {
	me := uint32(os.Geteuid())
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return bad("the segment is no regular file")
	case st.Uid != who.owner || (me != 0 && me != who.owner):
		return bad("the segment does not belong to the user of the process")
	case st.Mode&0o077 != 0:
		return bad("the segment could be written or read by others; it is not trusted")
	}
	return nil
}

// Process is one whose statistics can be read.
type Process struct {
	Pid        int
	Command    string
	State      snapshot.State
	Allocators []Allocator
	Segment    *Segment
}

// List finds every process that shows statistics to this user. The segments stay open.
func List() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var list []Process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		who, err := identify(pid)
		if err != nil {
			continue
		}
		g, err := find(who, statistics)
		if err != nil || g == nil {
			continue
		}
		allocators, err := g.Allocators()
		if err != nil {
			g.Close()
			continue
		}
		list = append(list, Process{pid, command(pid), who.state(), allocators, g})
	}
	slices.SortFunc(list, func(a, b Process) int { return a.Pid - b.Pid })
	return list, nil
}

func command(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	if words[0] == "" {
		b, _ = os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return strings.TrimSpace(string(b))
	}
	words[0] = filepath.Base(words[0])
	return strings.Join(words, " ")
}
