package binary

import (
	"debug/elf"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// imported describes what the slots of the global offset table point to: a symbol of another
// module, or an address of this one.
type imported struct {
	names  map[uint64]string
	values map[uint64]uint64
}

// maxRelocations limits the relocations of one file.
const maxRelocations = 1 << 22

// readImports reads the relocations of functions. A damaged section gives none.
func (im *Image) readImports() imported {
	found := imported{map[uint64]string{}, map[uint64]uint64{}}
	for _, s := range im.whole.Sections {
		if s.Type == elf.SHT_RELA && s.Flags&elf.SHF_ALLOC != 0 {
			_ = guard(im.path, func() error { return im.readRelocations(s, &found) })
		}
	}
	return found
}

func (im *Image) readRelocations(s *elf.Section, found *imported) error {
	table, err := im.whole.bytes(s)
	if err != nil {
		return err
	}
	symbols, names, err := im.dynamicSymbols(s.Link)
	if err != nil {
		return err
	}
	const size = 24
	for ; len(table) >= size && len(found.names)+len(found.values) < maxRelocations; table = table[size:] {
		slot, info := le64(table), le64(table[8:])
		switch elf.R_X86_64(info & 0xffffffff) {
		case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT:
			if at := (info >> 32) * elf.Sym64Size; at+elf.Sym64Size <= uint64(len(symbols)) {
				if name, _ := splitVersion(cString(names, le32(symbols[at:]))); name != "" {
					found.names[slot] = name
				}
			}
		case elf.R_X86_64_RELATIVE:
			if im.whole.executable(le64(table[16:])) {
				found.values[slot] = le64(table[16:])
			}
		}
	}
	return nil
}

// dynamicSymbols returns the symbol table that relocations refer to, and its names.
func (im *Image) dynamicSymbols(link uint32) (symbols []byte, names string, err error) {
	sections := im.whole.Sections
	if int(link) >= len(sections) || sections[link].Type != elf.SHT_DYNSYM || int(sections[link].Link) >= len(sections) {
		return nil, "", nil
	}
	if symbols, err = im.whole.bytes(sections[link]); err != nil {
		return nil, "", err
	}
	text, err := im.whole.bytes(sections[sections[link].Link])
	return symbols, string(text), err
}

// callee returns the address that a call leads to, 0 if it is not in this file, and the symbol
// there, "" if it is not known.
func (im *Image) callee(parts []codePart, inst *instruction) (target uint64, name string) {
	if !inst.direct {
		to, ok := whole(parts, inst).Args[0].(x86asm.Mem)
		if !ok || to.Base != x86asm.RIP || to.Index != 0 {
			return 0, ""
		}
		return im.slot(inst.end() + uint64(to.Disp))
	}
	target = inst.target()
	if f, ok := im.find(target); ok && f.addr == target {
		return target, f.name
	}
	return im.stub(target)
}

// slot returns what a slot of the global offset table points to.
func (im *Image) slot(at uint64) (target uint64, name string) {
	imports := im.imports()
	if name, ok := imports.names[at]; ok {
		return 0, name
	}
	if target, ok := imports.values[at]; ok {
		if f, ok := im.find(target); ok && f.addr == target {
			return target, f.name
		}
	}
	return 0, ""
}

// stub returns what a stub of the procedure linkage table jumps to.
func (im *Image) stub(at uint64) (target uint64, name string) {
	const longest = 16
	code, err := im.code(at, longest)
	if err != nil {
		return 0, ""
	}
	for range 2 {
		inst, ok := decodeInstruction(code)
		if !ok {
			return 0, ""
		}
		at, code = at+uint64(inst.Len), code[inst.Len:]
		if to, ok := inst.Args[0].(x86asm.Mem); ok && inst.Op == x86asm.JMP && to.Base == x86asm.RIP {
			return im.slot(at + uint64(to.Disp))
		}
	}
	return 0, ""
}

// returnsTwice names the functions whose calls may return several times: a call of setjmp returns again
// when longjmp is called.
var returnsTwice = map[string]bool{"setjmp": true, "_setjmp": true, "sigsetjmp": true, "__sigsetjmp": true, "vfork": true, "getcontext": true}

// endless names functions of system libraries that do not return.
var endless = map[string]bool{
	"abort": true, "exit": true, "_exit": true, "_Exit": true, "quick_exit": true, "pthread_exit": true, "thrd_exit": true,
	"__assert_fail": true, "__assert_perror_fail": true, "__assert": true, "__stack_chk_fail": true, "__fortify_fail": true, "__chk_fail": true,
	"longjmp": true, "_longjmp": true, "siglongjmp": true, "__longjmp_chk": true, "err": true, "errx": true, "verr": true, "verrx": true,
	"__cxa_throw": true, "__cxa_rethrow": true, "__cxa_bad_cast": true, "__cxa_bad_typeid": true, "__cxa_throw_bad_array_new_length": true,
	"__cxa_throw_bad_array_length": true, "_Unwind_Resume": true, "_ZSt9terminatev": true, "_ZSt10unexpectedv": true, "__libc_start_main": true,
	"_gfortran_stop_string": true, "_gfortran_stop_numeric": true, "_gfortran_error_stop_string": true, "_gfortran_error_stop_numeric": true,
	"_gfortran_runtime_error": true, "_gfortran_runtime_error_at": true, "_gfortran_os_error": true, "_gfortran_os_error_at": true,
	"runtime.gopanic": true, "runtime.throw": true, "runtime.fatal": true, "runtime.fatalthrow": true, "runtime.goexit0": true, "runtime.Goexit": true,
}

// endlessNamed reports whether a function is known by its name not to return. A program may have
// a function of its own with the name of one of the C library, which may return; only names that
// the language reserves are certain.
func endlessNamed(name string, own bool) bool {
	if own && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "runtime.") && !strings.HasSuffix(name, "longjmp") {
		return false
	}
	thrower := strings.HasPrefix(name, "_ZSt") && strings.Contains(name, "__throw_")
	return endless[name] || thrower || strings.HasPrefix(name, "runtime.panic") || strings.HasPrefix(name, "runtime.goPanic")
}

// neverReturns reports whether a call does not return to the instruction behind it. A function
// that the compiler knows not to return has neither a return nor a jump to another function.
func (im *Image) neverReturns(target uint64, name string) bool {
	if endlessNamed(name, target != 0) {
		return true
	}
	if target == 0 {
		return false
	}
	if known, ok := im.endless.Load(target); ok {
		return known.(bool)
	}
	f, ok := im.find(target)
	if !ok || f.addr != target || f.ifunc || f.unnamed {
		return false
	}
	never := false
	if !im.isLeft(f) {
		body, err := im.disassemble(f)
		never = err == nil && len(body.returns) == 0 && body.ends() && !slices.ContainsFunc(body.jumps, func(j jump) bool { return !j.direct || !body.holds(j.target) })
	}
	im.endless.Store(target, never)
	return never
}

// isLeft reports whether a function obviously returns or jumps to another one. It decodes only the way to the first
// return or jump, which is at the beginning of most functions.
func (im *Image) isLeft(f symbol) bool {
	code, err := im.code(f.addr, f.size)
	for at := 0; err == nil && at < len(code); {
		inst, ok := decodeFlow(code[at:])
		if !ok {
			return false
		}
		at += inst.Len
		switch {
		case inst.Op == x86asm.RET || inst.Op == x86asm.LRET:
			return true
		case isJump(inst.Op) && (!inst.direct || uint64(at)+uint64(int64(inst.distance)) >= uint64(len(code))):
			return true
		}
	}
	return false
}
