package binary

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mirador/sir"
)

// listed is an instruction as objdump prints it.
type listed struct {
	addr     uint64
	op, args string
}

var listing = regexp.MustCompile(`^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )+\s*\t?(.*)$`)

func disassembly(t *testing.T, path string) []listed {
	t.Helper()
	var all []listed
	for line := range strings.Lines(run(t, "objdump", "-d", "--wide", path)) {
		m := listing.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || m[2] == "" {
			continue
		}
		addr, _ := strconv.ParseUint(m[1], 16, 64)
		op, args := splitInstruction(m[2])
		all = append(all, listed{addr, op, args})
	}
	return all
}

func splitInstruction(s string) (op, args string) {
	f := strings.Fields(s)
	for len(f) > 1 && slices.Contains([]string{"repz", "rep", "bnd", "notrack", "cs", "data16"}, f[0]) {
		f = f[1:]
	}
	return f[0], strings.Join(f[1:], " ")
}

// directExits returns the exits of a function without cold parts from objdump's output: its
// returns, and its direct jumps to other functions.
func directExits(code []listed, u sir.Region) (exits []uint64) {
	i, _ := slices.BinarySearchFunc(code, u.Entry, func(l listed, a uint64) int { return int(int64(l.addr - a)) })
	for ; i < len(code) && code[i].addr < u.Entry+u.Size; i++ {
		l := code[i]
		target, err := strconv.ParseUint(strings.Fields(l.args + " -")[0], 16, 64)
		if l.op == "ret" || l.op == "jmp" && err == nil && (target < u.Entry || target >= u.Entry+u.Size) {
			exits = append(exits, l.addr)
		}
	}
	return exits
}

// indirect returns the exits that are jumps through a register or memory.
func indirect(code []listed, exits []uint64) (found []uint64) {
	for _, a := range exits {
		i, ok := slices.BinarySearchFunc(code, a, func(l listed, a uint64) int { return int(int64(l.addr - a)) })
		if ok && code[i].op == "jmp" && strings.HasPrefix(code[i].args, "*") {
			found = append(found, a)
		}
	}
	return found
}

// TestExitsAgreeWithObjdump compares all returns and direct tail jumps with objdump's, in
// every function of every program, including the C library in the static one.
func TestExitsAgreeWithObjdump(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant, im *Image) {
		code := disassembly(t, im.Path())
		var compared, refused int
		for _, u := range program(im).Regions {
			if u.Symbol == "switch_table_behind" { // objdump disassembles its table
				continue
			}
			exits, err := im.Exits(&u)
			if err != nil {
				var unclear *CodeError
				if !errors.As(err, &unclear) {
					t.Errorf("%s: %v", u.Symbol, err)
				}
				refused++
				continue
			}
			compared++
			want := directExits(code, u)
			jumps := indirect(code, exits)
			got := slices.DeleteFunc(slices.Clone(exits), func(a uint64) bool {
				return slices.Contains(jumps, a) || a < u.Entry || a >= u.Entry+u.Size
			})
			want = slices.DeleteFunc(want, func(a uint64) bool { return !slices.Contains(got, a) && intoColdPart(t, im, code, a) })
			if !slices.Equal(got, want) {
				t.Errorf("%s: exits %#x, objdump says %#x", u.Symbol, got, want)
			}
		}
		// Only assembler code with conditional jumps between functions is refused.
		if compared < 10 || refused*20 > compared {
			t.Errorf("%d functions compared, %d refused", compared, refused)
		}
	})
}

func intoColdPart(t *testing.T, im *Image, code []listed, addr uint64) bool {
	t.Helper()
	i, _ := slices.BinarySearchFunc(code, addr, func(l listed, a uint64) int { return int(int64(l.addr - a)) })
	return strings.Contains(code[i].args, ".cold") || im.stripped()
}

func (im *Image) stripped() bool { return im.elf.Section(".symtab") == nil }

func TestShapesOfExits(t *testing.T) {
	for _, v := range variants {
		if v.sources[0] != "shapes.c" {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			im := open(t, programs.make(t, v))
			code := disassembly(t, im.Path())
			optimised := !strings.Contains(v.name, "O0")
			for _, u := range program(im).Regions {
				exits, err := im.Exits(&u)
				kind, _, _ := strings.Cut(u.Symbol, "_")
				if !slices.Contains([]string{"returns", "tail", "switch", "never"}, kind) || u.File == "" && strings.HasPrefix(u.Symbol, "__") {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", u.Symbol, err)
					continue
				}
				jumps := len(indirect(code, exits))
				switch {
				case kind == "returns" && len(exits) < 1,
					kind == "never" && len(exits) != 0,
					kind == "switch" && (jumps != 0 || len(exits) == 0),
					u.Symbol == "tail_direct" && len(exits) != 1,
					(u.Symbol == "tail_pointer" || u.Symbol == "tail_method") && (len(exits) != 1 || optimised && jumps != 1):
					t.Errorf("%s: exits %#x, %d of them indirect jumps", u.Symbol, exits, jumps)
				}
			}
		})
	}
}

func TestTableAfterCodeIsNotCode(t *testing.T) {
	im := open(t, named(t, "O2"))
	u := unit(t, im, "switch_table_behind")
	exits, err := im.Exits(&u)
	if err != nil || len(exits) != 2 || exits[1] >= u.Entry+u.Size-16 {
		t.Errorf("exits %#x (%v) of %+v", exits, err, u)
	}
}

func TestColdPartsBelongToTheirFunction(t *testing.T) {
	for _, name := range []string{"O2", "stripped"} {
		im := open(t, named(t, name))
		u := unit(t, im, "unlikely_part")
		exits, err := im.Exits(&u)
		outside := slices.ContainsFunc(exits, func(a uint64) bool { return a < u.Entry || a >= u.Entry+u.Size })
		if err != nil || !outside {
			t.Errorf("%s: exits %#x (%v) of %+v: none in the cold part", name, exits, err, u)
		}
	}
}

func TestExitsAtAnAddressWithoutFunction(t *testing.T) {
	im := open(t, named(t, "O2"))
	_, err := im.Exits(&sir.Region{Name: "nobody", Entry: 1})
	var typed *CodeError
	if !errors.As(err, &typed) {
		t.Errorf("error %v", err)
	}
}

// TestInstructionLengths checks the lengths of instructions that x86asm does not support.
func TestInstructionLengths(t *testing.T) {
	for text, want := range map[string]int{
		"f3 0f 1e fa":                4, // endbr64
		"c5 f8 77":                   3, // vzeroupper
		"c5 fd 6f 06":                4, // vmovdqa (%rsi),%ymm0
		"c4 e3 7d 39 c1 01":          6, // vextracti128 $1,%ymm0,%xmm1
		"c5 f9 70 c0 4e":             5, // vpshufd $0x4e,%xmm0,%xmm0
		"62 f1 fe 48 6f 46 01":       7, // vmovdqu64 0x40(%rsi),%zmm0
		"62 f3 7d 20 3f 06 00":       7, // vpcmpub $0,(%rsi),%ymm16,%k0
		"c4 e2 f8 f5 c2":             5, // bzhi
		"66 0f 3a 63 c1 1a":          6, // pcmpistri
		"64 f3 48 0f 1e c8":          6, // rdsspq with a prefix
		"0f c7 64 24 40":             5, // xsavec 0x40(%rsp)
		"c5 f8 58 05 01 00 00 00":    8, // vaddps with a displacement from rip
		"c5 fa 10 84 24 80 00 00 00": 9, // vmovss 0x80(%rsp)
	} {
		var code []byte
		for _, b := range strings.Fields(text) {
			n, err := strconv.ParseUint(b, 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, byte(n))
		}
		inst, ok := decodeInstruction(append(code, 0x90, 0x90, 0x90, 0x90))
		if !ok || inst.Len != want {
			t.Errorf("%s: length %d (%v), want %d", text, inst.Len, ok, want)
		}
		for n := range code { // truncated code: no panic, and no length beyond the end
			if inst, ok := decodeInstruction(code[:n]); ok && inst.Len > n {
				t.Errorf("%s cut to %d bytes: length %d", text, n, inst.Len)
			}
		}
	}
}
