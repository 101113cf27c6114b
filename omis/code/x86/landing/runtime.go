package landing

import (
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"mirador/sir/safedwarf"
)

// Runtime describes the runtime's data in the file of a Go program. A goroutine may
// change its thread in the middle of a function, and the runtime may move its stack. But
// the address of its descriptor (runtime.g) and the distance of a frame from the upper
// end of its stack are constant.
type Runtime struct {
	// Begin and End bound the program's Go functions, by addresses of the file. Code of a
	// C compiler is outside.
	Begin, End uint64
	// G is the offset from the address in register fs at which a thread keeps the address
	// of its goroutine's descriptor, 8 bytes long.
	G int32
	// Unknown is the reason why G is not known, nil if it is.
	Unknown error
	// Marks reports that the code is in a function that marks where a woven region begins or ends: see
	// node.GoCode.Marked.
	Marks bool

	marks []span
}

// span is the code of a function.
type span struct{ begin, end uint64 }

// StackEnd is the offset in a descriptor of the address of the stack's upper end, in
// every version of Go for x86-64.
const StackEnd = 8

// ReadRuntime reads a file; it returns nil if the file is not a Go program.
func ReadRuntime(file *elf.File) *Runtime {
	table := file.Section(".gopclntab")
	text := file.Section(".text")
	if table == nil || text == nil {
		return nil
	}
	r := &Runtime{Begin: text.Addr, End: text.Addr + text.Size}
	var grow, tls uint64
	static, _ := file.Symbols() // a stripped file has none
	for _, s := range static {
		switch s.Name {
		case "runtime.text":
			r.Begin = s.Value
		case "runtime.etext":
			r.End = s.Value
		case "runtime.morestack", "runtime.morestack.abi0":
			grow = s.Value
		case "runtime.tlsg":
			tls = s.Value
		default:
			r.mark(s.Name, s.Value, s.Value+s.Size)
		}
	}
	if grow == 0 {
		grow = r.readTable(table)
	}
	r.G, r.Unknown = goroutinePlace(file, grow, tls)
	return r
}

// readTable returns runtime.morestack, and finds the functions that mark regions, by the table that the runtime itself
// uses.
func (r *Runtime) readTable(table *elf.Section) (grow uint64) {
	bytes, err := table.Data()
	if err != nil {
		return 0
	}
	functions, err := safedwarf.GoFunctions(bytes, r.Begin)
	if err != nil {
		return 0
	}
	for _, f := range functions {
		if f.Name == "runtime.morestack" {
			grow = f.Entry
		}
		r.mark(f.Name, f.Entry, f.End)
	}
	return grow
}

// mark records a function if package sir/weave has written it to mark where a region begins or ends.
func (r *Runtime) mark(name string, begin, end uint64) {
	if strings.Contains(name, ".mirador_begin_") || strings.Contains(name, ".mirador_end_") {
		r.marks = append(r.marks, span{begin, end})
	}
}

// at returns the runtime's data for an address of the file, nil if the code there is not Go.
func (r *Runtime) at(addr uint64) *Runtime {
	if !r.Has(addr) {
		return nil
	}
	if slices.ContainsFunc(r.marks, func(s span) bool { return s.begin <= addr && addr < s.end }) {
		marked := *r
		marked.Marks = true
		return &marked
	}
	return r
}

var errNoPlace = errors.New("the file does not show where a thread keeps the goroutine that it runs")

// goroutinePlace reads the offset from the first instructions of runtime.morestack, which
// load the address of the descriptor: the offset from fs is a constant, or the linker has
// put it into a register or a table.
func goroutinePlace(file *elf.File, grow, tls uint64) (int32, error) {
	if grow == 0 {
		return 0, errNoPlace
	}
	var code [32]byte
	if !readAt(file, code[:], grow) {
		return 0, errNoPlace
	}
	distances := make(map[x86asm.Reg]int64)
	for at := 0; at < len(code); {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil || inst.Op != x86asm.MOV {
			return 0, errNoPlace
		}
		at += inst.Len
		to, ok := inst.Args[0].(x86asm.Reg)
		if !ok {
			return 0, errNoPlace
		}
		switch from := inst.Args[1].(type) {
		case x86asm.Imm:
			distances[whole(to)] = int64(int32(from))
		case x86asm.Mem:
			switch distance, loaded := distances[from.Base]; {
			case from.Segment == x86asm.FS && from.Base == 0 && from.Index == 0:
				return int32(from.Disp), nil
			case from.Segment == x86asm.FS && loaded && from.Index == 0:
				return int32(distance + from.Disp), nil
			case from.Base == x86asm.RIP:
				d, err := distanceOfTLS(file, tls)
				if err != nil {
					return 0, err
				}
				distances[whole(to)] = d
			default:
				return 0, errNoPlace
			}
		default:
			return 0, errNoPlace
		}
	}
	return 0, errNoPlace
}

// whole returns the full register of which an instruction writes the lower half.
func whole(r x86asm.Reg) x86asm.Reg {
	if r >= x86asm.EAX && r <= x86asm.R15L {
		return r - x86asm.EAX + x86asm.RAX
	}
	return r
}

// distanceOfTLS returns the offset of the runtime's variable from fs. According to the
// ABI, the thread-local memory of the program itself ends at the address in fs.
func distanceOfTLS(file *elf.File, tls uint64) (int64, error) {
	interpreted := false
	for _, p := range file.Progs {
		interpreted = interpreted || p.Type == elf.PT_INTERP
	}
	if file.Type != elf.ET_EXEC && !interpreted {
		return 0, errors.New("it is a library, and the place where a thread keeps its goroutine differs from one process to the next")
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_TLS {
			size, align := p.Memsz, max(p.Align, 1)
			return int64(tls) - int64((size+align-1)&^(align-1)), nil
		}
	}
	return 0, errNoPlace
}

func readAt(file *elf.File, code []byte, addr uint64) bool {
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr+uint64(len(code)) <= p.Filesz {
			_, err := p.ReadAt(code, int64(addr-p.Vaddr))
			return err == nil
		}
	}
	return false
}

// Has reports whether the code at an address of the file is Go.
func (r *Runtime) Has(addr uint64) bool { return r != nil && r.Begin <= addr && addr < r.End }
