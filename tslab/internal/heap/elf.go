package heap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"

	"golang.org/x/sys/unix"
)

// Names of functions are read from ELF files here and not by debug/elf, because root may look at what anybody has mapped:
// that package copies a name for each symbol, so a file of a few megabytes, whose symbols all begin in one long name, costs
// it any amount of memory, and so do a compressed table and one that a sparse file claims. Here tables are bounded, and
// a name is copied when it is asked for.

const (
	maxTable    = 256 << 20 // bytes of a table of symbols, or of names
	maxSections = 1 << 16
	maxNote     = 4096
	maxName     = 1 << 16

	elfHeader, elfProg, elfSection, elfSymbol = 64, 56, 64, 24
)

var (
	errStripped = errors.New("it is stripped")
	errDamaged  = errors.New("it is damaged")
	le          = binary.LittleEndian
)

// function: the name begins at that place of object.names.
type function struct {
	value, size uint64
	name        uint32
}

type load struct{ offset, address, bytes uint64 }

// object is what a mapped file says of its functions.
type object struct {
	functions []function // by address
	names     []byte
	loads     []load
	buildID   string
	exported  bool // functions are those that it exports only: it is stripped
}

type section struct {
	kind, link          uint32
	flags, offset, size uint64
}

// read trusts nothing in the file. inode: that of the file that is wanted; 0: any.
func read(path string, inode uint64) (*object, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("no regular file")
	}
	if inode != 0 && st.Ino != inode {
		return nil, errors.New("another file has its name now")
	}
	return parseELF(f)
}

func parseELF(f io.ReaderAt) (*object, error) {
	head, err := piece(f, 0, elfHeader)
	if err != nil || string(head[:4]) != "\x7fELF" {
		return nil, errors.New("no program or library")
	}
	if head[4] != 2 || head[5] != 1 || le.Uint16(head[54:]) != elfProg && le.Uint16(head[56:]) != 0 {
		return nil, errors.New("it is of another kind of machine")
	}
	o := &object{}
	if err := o.readLoads(f, le.Uint64(head[32:]), uint64(le.Uint16(head[56:]))); err != nil {
		return nil, err
	}
	sections, err := readSections(f, head)
	if err != nil {
		return nil, err
	}
	for _, s := range sections {
		if s.kind == 7 && s.size <= maxNote && o.buildID == "" { // SHT_NOTE
			o.buildID = buildID(f, s)
		}
	}
	for _, kind := range []uint32{2, 11} { // SHT_SYMTAB, else SHT_DYNSYM
		if err := o.readFunctions(f, sections, kind); err != nil {
			return nil, err
		}
		if len(o.functions) != 0 {
			o.exported = kind == 11
			return o, nil
		}
	}
	o.exported = true
	return o, errStripped // its debug symbols may be elsewhere
}

// piece reads so many bytes of a file that has them; the caller has bounded them.
func piece(f io.ReaderAt, offset, bytes uint64) ([]byte, error) {
	if offset > math.MaxInt64-bytes {
		return nil, errDamaged
	}
	if bytes != 0 { // before there is memory for it
		var last [1]byte
		if _, err := f.ReadAt(last[:], int64(offset+bytes-1)); err != nil {
			return nil, errDamaged
		}
	}
	b := make([]byte, bytes)
	if n, err := f.ReadAt(b, int64(offset)); uint64(n) != bytes {
		return nil, cmp.Or(err, errDamaged)
	}
	return b, nil
}

func (o *object) readLoads(f io.ReaderAt, offset, count uint64) error {
	b, err := piece(f, offset, count*elfProg)
	for ; err == nil && len(b) != 0; b = b[elfProg:] {
		if le.Uint32(b) == 1 { // PT_LOAD
			o.loads = append(o.loads, load{le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[32:])})
		}
	}
	return err
}

func readSections(f io.ReaderAt, head []byte) ([]section, error) {
	offset, count := le.Uint64(head[40:]), uint64(le.Uint16(head[60:]))
	if offset == 0 {
		return nil, errStripped
	}
	if le.Uint16(head[58:]) != elfSection {
		return nil, errDamaged
	}
	if count == 0 { // more than fit there: the first one says how many
		first, err := piece(f, offset, elfSection)
		if err != nil {
			return nil, err
		}
		count = le.Uint64(first[32:])
	}
	if count > maxSections {
		return nil, errors.New("it has too many sections")
	}
	b, err := piece(f, offset, count*elfSection)
	if err != nil {
		return nil, err
	}
	list := make([]section, 0, count)
	for ; len(b) != 0; b = b[elfSection:] {
		list = append(list, section{le.Uint32(b[4:]), le.Uint32(b[40:]), le.Uint64(b[8:]), le.Uint64(b[24:]), le.Uint64(b[32:])})
	}
	return list, nil
}

// readFunctions of the first table of a kind.
func (o *object) readFunctions(f io.ReaderAt, sections []section, kind uint32) error {
	n := slices.IndexFunc(sections, func(s section) bool { return s.kind == kind })
	if n < 0 {
		return nil
	}
	table := sections[n]
	if uint64(table.link) >= uint64(len(sections)) || sections[table.link].kind != 3 { // SHT_STRTAB
		return errDamaged
	}
	names := sections[table.link]
	if table.size > maxTable || names.size > maxTable || (table.flags|names.flags)&0x800 != 0 { // SHF_COMPRESSED
		return errors.New("its table of symbols is too large")
	}
	b, err := piece(f, table.offset, table.size-table.size%elfSymbol)
	if err == nil {
		o.names, err = piece(f, names.offset, names.size)
	}
	if err != nil {
		return err
	}
	for ; len(b) != 0; b = b[elfSymbol:] {
		s := function{le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b)}
		if b[4]&15 == 2 && s.value != 0 && uint64(s.name) < uint64(len(o.names)) && o.names[s.name] != 0 { // STT_FUNC
			o.functions = append(o.functions, s)
		}
	}
	slices.SortStableFunc(o.functions, func(a, b function) int { return cmp.Compare(a.value, b.value) })
	return nil
}

func (o *object) name(f function) string {
	b := o.names[f.name:]
	b = b[:min(len(b), maxName)]
	return string(b[:max(0, bytes.IndexByte(b, 0))])
}

// find is the function at an offset of the file, or "".
func (o *object) find(offset uint64) string {
	for _, l := range o.loads {
		if offset < l.offset || offset-l.offset >= l.bytes {
			continue
		}
		at := offset - l.offset + l.address
		n := sort.Search(len(o.functions), func(k int) bool { return o.functions[k].value > at })
		if n == 0 {
			continue
		}
		if f := o.functions[n-1]; f.size == 0 || at-f.value < f.size {
			return o.name(f)
		}
	}
	return ""
}

// buildID is the one that a section of notes has, in hexadecimal digits, or "".
func buildID(f io.ReaderAt, s section) string {
	b, err := piece(f, s.offset, s.size)
	if err != nil || len(b) < 16 || le.Uint32(b) != 4 || le.Uint32(b[8:]) != 3 || string(b[12:16]) != "GNU\x00" {
		return ""
	}
	size := uint64(le.Uint32(b[4:]))
	if size > uint64(len(b)-16) {
		return ""
	}
	return hex.EncodeToString(b[16 : 16+size])
}

func noNames(file string, err error) string {
	if errors.Is(err, errStripped) {
		return stripped(file, "")
	}
	return fmt.Sprintf("no names of functions in %s: %v", file, err)
}

// stripped says what helps.
func stripped(file, buildID string) string {
	where := ""
	if buildID != "" {
		where = ", which is looked for as " + debugFile("", buildID)
	}
	return fmt.Sprintf("functions in %s have no names, for it is stripped: install its debug symbols (package NAME-dbgsym or NAME-debuginfo%s), or link it without -s", file, where)
}

// debugFile is where packages of debug symbols put a file's.
func debugFile(root, buildID string) string {
	return root + "/usr/lib/debug/.build-id/" + buildID[:2] + "/" + buildID[2:] + ".debug"
}
