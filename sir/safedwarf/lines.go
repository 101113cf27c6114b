package safedwarf

import (
	"bytes"
	"context"
	"debug/dwarf"
	"errors"
	"math"
	"path"
)

// Lines is the line program of a unit, and its table of files (DWARF 5, 6.2). The reader in
// debug/dwarf allocates as many directories as a header claims, and a path for each file: a
// header of a hundred bytes can ask for a terabyte.
type Lines struct {
	version, minimum, most uint64 // minimum_instruction_length, maximum_operations_per_instruction
	base                   int64
	statement              bool // of the first row
	lineRange, opcodeBase  uint64
	lengths, program       []byte // of the operands of each instruction; the instructions
	compDir, str, lineStr  []byte
	directories, files     []file
}

type file struct {
	name      []byte // in the section; what follows a zero is not part of it
	directory uint64
}

// mostFiles limits a table, whose entries take more memory than the section.
const mostFiles = 1 << 18

// Row is a row of the table that a line program makes.
type Row struct {
	Address   uint64
	File      int // see Lines.File
	Line      int
	Column    uint16 // 0: not known
	Statement bool   // a statement begins here
}

// Forms and contents of the tables of files in DWARF 5.
const (
	formImplicitConst             = 0x21
	contentPath, contentDirectory = 1, 2
)

var errLines = errors.New("damaged line program")

// Lines returns the line program of a unit by the unit's first entry; nil if it has none.
func (d *Data) Lines(unit *dwarf.Entry) (*Lines, error) {
	at, ok := unit.Val(dwarf.AttrStmtList).(int64)
	if !ok {
		return nil, nil
	}
	section := d.sections[".debug_line"]
	if at < 0 || at > int64(len(section)) {
		return nil, errLines
	}
	dir, _ := unit.Val(dwarf.AttrCompDir).(string)
	l := &Lines{compDir: []byte(dir), str: d.sections[".debug_str"], lineStr: d.sections[".debug_line_str"]}
	return l, l.header(cursor{b: section[at:]})
}

func (l *Lines) header(c cursor) error {
	length := c.fixed(4)
	wide := length == 0xffffffff
	if wide {
		length = c.fixed(8)
	}
	c.b = c.take(length)
	if l.version = c.fixed(2); l.version < 2 || l.version > 5 {
		return errLines
	}
	if l.version >= 5 {
		c.take(2) // sizes of addresses and segment selectors
	}
	header := c.offset(wide)
	if header > uint64(len(c.b)) {
		return errLines
	}
	l.program = c.b[header:]
	c.b = c.b[:header]
	l.minimum, l.most = c.u8(), 1
	if l.version >= 4 {
		l.most = c.u8()
	}
	l.statement = c.u8() != 0
	l.base, l.lineRange, l.opcodeBase = int64(int8(c.u8())), c.u8(), c.u8()
	if l.most == 0 || l.lineRange == 0 || l.opcodeBase == 0 || c.bad {
		return errLines
	}
	l.lengths = c.take(l.opcodeBase - 1)
	if l.version >= 5 {
		l.directories = l.table(&c, wide)
		l.files = l.table(&c, wide)
	} else {
		l.oldTables(&c)
	}
	if c.bad {
		return errLines
	}
	return nil
}

// oldTables reads the tables of DWARF 2 to 4. Directory 0 is the directory of the compilation;
// there is no file 0.
func (l *Lines) oldTables(c *cursor) {
	l.directories, l.files = []file{{name: l.compDir}}, []file{{}}
	for name := c.text(); len(name) > 0 && len(l.directories) < mostFiles; name = c.text() {
		l.directories = append(l.directories, file{name: name})
	}
	for name := c.text(); len(name) > 0 && len(l.files) < mostFiles; name = c.text() {
		l.files = append(l.files, file{name, c.uleb()})
		c.uleb() // time
		c.uleb() // size
	}
}

// table reads a table of DWARF 5, whose header describes its entries.
func (l *Lines) table(c *cursor, wide bool) (list []file) {
	formats := make([][2]uint64, c.u8())
	for i := range formats {
		formats[i] = [2]uint64{c.uleb(), c.uleb()}
	}
	count := c.uleb()
	if len(formats) == 0 && count > 0 || count > mostFiles {
		c.bad = true
	}
	for ; count > 0 && !c.bad; count-- {
		var one file
		for _, f := range formats {
			text, number := l.value(c, f[1], wide)
			switch f[0] {
			case contentPath:
				one.name = text
			case contentDirectory:
				one.directory = number
			}
		}
		list = append(list, one)
	}
	return list
}

// value reads a value of a form, which takes at least one byte.
func (l *Lines) value(c *cursor, form uint64, wide bool) (text []byte, number uint64) {
	shared := func(section []byte) []byte {
		return section[min(c.offset(wide), uint64(len(section))):]
	}
	switch form {
	case 0x08: // DW_FORM_string
		return c.text(), 0
	case 0x0e: // DW_FORM_strp
		return shared(l.str), 0
	case 0x1f: // DW_FORM_line_strp
		return shared(l.lineStr), 0
	case 0x0b, 0x25: // data1, strx1
		return nil, c.u8()
	case 0x05, 0x26: // data2, strx2
		return nil, c.fixed(2)
	case 0x27: // strx3
		return nil, c.fixed(3)
	case 0x06, 0x28: // data4, strx4
		return nil, c.fixed(4)
	case 0x07: // data8
		return nil, c.fixed(8)
	case 0x1e: // data16
		c.take(16)
	case 0x0f, 0x1a: // udata, strx
		return nil, c.uleb()
	case 0x09: // block
		c.take(c.uleb())
	case 0x1d: // strp_sup
		c.offset(wide)
	default:
		c.bad = true
	}
	return nil, 0
}

// Files returns the number of files in the table.
func (l *Lines) Files() int { return len(l.files) }

// Size returns the length of the program. Each row needs at least one byte of it.
func (l *Lines) Size() int { return len(l.program) }

// longestPath is the length to which paths are cut: Linux has no longer ones (PATH_MAX).
const longestPath = 4096

// File returns the path of a file of the table, "" if it is not known.
func (l *Lines) File(n int) string {
	if n < 0 || n >= len(l.files) {
		return ""
	}
	name, directory := l.files[n].text(), ""
	if at := l.files[n].directory; name != "" && !path.IsAbs(name) && at < uint64(len(l.directories)) {
		if directory = l.directories[at].text(); directory != "" && !path.IsAbs(directory) && at != 0 {
			directory = path.Join(l.directories[0].text(), directory)
		}
	}
	if directory == "" {
		return name
	}
	return path.Join(directory, name)
}

func (f file) text() string {
	name, _, _ := bytes.Cut(f.name[:min(len(f.name), longestPath)], []byte{0})
	return string(name)
}

// FilesLike returns the files of the table whose paths match.
func (l *Lines) FilesLike(match func(path string) bool) (list []int) {
	for n := range l.files {
		if match(l.File(n)) {
			list = append(list, n)
		}
	}
	return list
}

// Each runs the program. It calls span for two consecutive rows of a sequence: the first
// applies to all addresses before the second's. It ends when span returns false.
func (l *Lines) Each(ctx context.Context, span func(from, to Row) bool) error {
	return l.EachPair(ctx, func(from, to Row) bool { return from.Address >= to.Address || span(from, to) })
}

// EachPair is Each with the rows that apply to no address. If the compiler left no code of a
// statement, the statement has such a row.
func (l *Lines) EachPair(ctx context.Context, span func(from, to Row) bool) error {
	m := machine{Lines: l, span: span}
	m.reset()
	const often = 1 << 12 // instructions between checks
	c := cursor{b: l.program}
	for n := 0; len(c.b) > 0 && !m.done; n++ {
		if n%often == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		m.step(&c)
	}
	if c.bad {
		return errLines
	}
	return nil
}

// machine executes a line program (DWARF 5, 6.2.2).
type machine struct {
	*Lines
	span func(from, to Row) bool
	row  Row
	op   uint64 // op_index
	last Row
	open bool // last is a row of this sequence
	done bool
}

func (m *machine) reset() { m.row, m.op = Row{File: 1, Line: 1, Statement: m.statement}, 0 }

// emit ends a row.
func (m *machine) emit(last bool) {
	if m.open && m.last.Address != 0 {
		m.done = !m.span(m.last, m.row)
	}
	m.last, m.open = m.row, !last
}

func (m *machine) advance(operations uint64) {
	m.op += operations
	m.row.Address += m.minimum * (m.op / m.most)
	m.op %= m.most
}

func (m *machine) step(c *cursor) {
	switch op := c.u8(); {
	case op >= m.opcodeBase:
		op -= m.opcodeBase
		m.advance(op / m.lineRange)
		m.row.Line += int(m.base) + int(op%m.lineRange)
		m.emit(false)
	case op == 0:
		m.extended(cursor{b: c.take(c.uleb())})
	default:
		m.standard(c, op)
	}
}

func (m *machine) extended(c cursor) {
	switch c.u8() {
	case 1: // DW_LNE_end_sequence
		m.emit(true)
		m.reset()
	case 2: // DW_LNE_set_address
		m.row.Address, m.op = c.fixed(min(uint64(len(c.b)), 8)), 0
	}
}

func (m *machine) standard(c *cursor, op uint64) {
	switch op {
	case 1: // DW_LNS_copy
		m.emit(false)
	case 2: // advance_pc
		m.advance(c.uleb())
	case 3: // advance_line
		m.row.Line += int(c.sleb())
	case 4: // set_file
		m.row.File = int(c.uleb())
	case 5: // set_column
		m.row.Column = uint16(min(c.uleb(), math.MaxUint16))
	case 6: // negate_stmt
		m.row.Statement = !m.row.Statement
	case 8: // const_add_pc
		m.advance((255 - m.opcodeBase) / m.lineRange)
	case 9: // fixed_advance_pc
		m.row.Address, m.op = m.row.Address+c.fixed(2), 0
	default: // they change no column that Row has
		for range m.lengths[op-1] {
			c.uleb()
		}
	}
}
