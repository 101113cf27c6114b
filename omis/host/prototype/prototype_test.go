package prototype

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"mirador/omis"
)

func TestTypes(t *testing.T) {
	for text, want := range map[string]Type{
		"int":                    integer(4, true),
		"unsigned":               integer(4, false),
		"unsigned long long int": integer(8, false),
		"long unsigned int":      integer(8, false),
		"short":                  integer(2, true),
		"const char":             character,
		"unsigned char":          {Kind: Integer, Size: 1, Char: true},
		"_Bool":                  integer(1, false),
		"float":                  {Kind: Floating, Size: 4},
		"double":                 {Kind: Floating, Size: 8},
		"long double":            {Kind: Floating, Size: 16},
		"size_t":                 integer(8, false),
		"enum colour":            integer(4, false),
		"const char *":           PointerTo(character),
		"char *const *":          PointerTo(PointerTo(character)),
		"struct stat *restrict":  PointerTo(Type{Kind: Aggregate}),
		"Opaque *":               PointerTo(Type{Kind: Aggregate}),
	} {
		f, err := ParseOne("void f(" + text + " x);")
		if err != nil || !reflect.DeepEqual(f.Params[0].Type, want) || f.Params[0].Name != "x" {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
}

func TestFile(t *testing.T) {
	functions, err := Parse(`
		# 1 "pvm3.h"
		/* messages */
		int pvm_send(int tid, int msgtag); // sends
		extern int pvm_recv(int, int);
		typedef long Handle;
		typedef struct group *Group;
		void *join(Handle h, Group g, ...);
		int each(int (*visit)(void *, int), double values[4][4], char names[]);
		int nothing(void), ;
		int empty();
	`)
	var bad *Error
	if !errors.As(err, &bad) || bad.Line != 10 || bad.Msg != `";" is expected, not ","` {
		t.Errorf("error %v", err)
	}
	var names []string
	for _, f := range functions {
		names = append(names, fmt.Sprintf("%s/%d", f.Name, len(f.Params)))
	}
	if got, want := strings.Join(names, " "), "pvm_send/2 pvm_recv/2 join/2 each/3 empty/0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !functions[2].Variadic || !reflect.DeepEqual(functions[2].Params[0].Type, integer(8, true)) || functions[2].Params[1].Type.Kind != Pointer {
		t.Errorf("%+v", functions[2])
	}
	each := functions[3].Params
	if each[0].Type.Kind != Pointer || each[1].Type.Kind != Pointer || each[2].Direction != In {
		t.Errorf("%+v", each)
	}
}

func TestLengths(t *testing.T) {
	f, err := ParseOne("long f(in(n) void *a, size_t n, out(result) char *b, out(12 * n) struct e *c, inout int *m, out(*m) void *d, out(8) void *e);")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]Length{
		0: {OfParam, 1, 1}, 2: {Kind: OfResult, Scale: 1}, 3: {OfParam, 1, 12}, 5: {AtParam, 4, 1}, 6: {Kind: Constant, Scale: 8},
	} {
		if f.Params[i].Length != want {
			t.Errorf("parameter %d: %+v, want %+v", i, f.Params[i].Length, want)
		}
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	for text, want := range map[string]string{
		"int f(colour c);":           "line 1, column 7: the type colour is not known: declare it with typedef",
		"int\nf(in int x);":          "line 2, column 3: in is allowed only before a pointer",
		"int f(in(n) void *p);":      "line 1, column 10: f has no parameter n",
		"int f(in(p) void *p);":      "line 1, column 10: p is not an integer, so it cannot be a length",
		"int f(in(0) void *p);":      "line 1, column 10: 0 is not a length",
		"int f(struct big b);":       "line 1, column 7: the size of struct is not known: pass a pointer, or declare it with typedef",
		"int (f);":                   `line 1, column 5: the name of a function is expected, not "("`,
		"int f(int":                  `line 1, column 10: ")" is expected, not the end`,
		"int f(void) /*":             "line 1, column 13: the comment does not end",
		"int f(int x) { return x; }": "line 1, column 14: unexpected '{'",
		"int f(int g(void));":        "line 1, column 12: a function is passed as a pointer: (*name)(…)",
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// space is a small memory at 0x1000.
type space []byte

func (s space) read(buf []byte, addr uint64) (int, error) {
	if addr < 0x1000 || addr >= 0x1000+uint64(len(s)) {
		return 0, os.ErrInvalid
	}
	n := copy(buf, s[addr-0x1000:])
	if n < len(buf) {
		return n, os.ErrInvalid
	}
	return n, nil
}

func decode(t *testing.T, proto string, now Direction, result omis.Value, mem space, bits ...uint64) []omis.Value {
	t.Helper()
	f, err := ParseOne(proto)
	if err != nil {
		t.Fatal(err)
	}
	args := make([]Arg, len(bits))
	for i, b := range bits {
		args[i].Bits = b
	}
	if now == In {
		return f.Started(args, mem.read)
	}
	return f.Ended(args, result, mem.read)[1:]
}

func TestDecoding(t *testing.T) {
	mem := space(make([]byte, 8192))
	copy(mem, "hello\x00")
	binary.LittleEndian.PutUint64(mem[16:], 0x1000)
	binary.LittleEndian.PutUint64(mem[24:], 0x1001)
	binary.LittleEndian.PutUint32(mem[64:], 0xffffffff)
	binary.LittleEndian.PutUint32(mem[68:], 3)
	copy(mem[8188:], "last")
	minus := func(n int64) uint64 { return uint64(n) }
	for _, c := range []struct {
		proto string
		now   Direction
		bits  []uint64
		want  omis.Value
	}{
		{"void f(int x);", In, []uint64{0xffffffff}, omis.Int(-1)},
		{"void f(int x);", In, []uint64{0xdead00000005}, omis.Int(5)},
		{"void f(unsigned x);", In, []uint64{minus(-1)}, omis.Uint(0xffffffff)},
		{"void f(unsigned char x);", In, []uint64{0x1ff}, omis.Uint(255)},
		{"void f(long x);", In, []uint64{minus(-7)}, omis.Int(-7)},
		{"void f(double x);", In, []uint64{math.Float64bits(2.5)}, omis.Float(2.5)},
		{"void f(float x);", In, []uint64{uint64(math.Float32bits(-0.5))}, omis.Float(-0.5)},
		{"void f(const char *s);", In, []uint64{0x1000}, omis.String("hello")},
		{"void f(const char *s);", In, []uint64{0}, omis.Uint(0)},
		{"void f(const char *s);", In, []uint64{77}, omis.Uint(77)},
		{"void f(const char *s);", In, []uint64{0x2ffc}, omis.String("last")},
		{"void f(out char *s);", In, []uint64{0x1000}, omis.Uint(0x1000)},
		{"void f(out char *s);", Out, []uint64{0x1000}, omis.String("hello")},
		{"void f(in char **v);", In, []uint64{0x1010}, omis.List(omis.String("hello"), omis.String("ello"))},
		{"void f(void *p);", Out, []uint64{0x1000}, omis.Uint(0x1000)},
		{"void f(in(n) void *p, int n);", In, []uint64{0x1000, 3}, omis.Binary([]byte("hel"))},
		{"void f(in(n) void *p, int n);", In, []uint64{0x1000, minus(-3)}, omis.Binary(nil)},
		{"void f(in(n) void *p, long n);", In, []uint64{0x2ffc, 1 << 40}, omis.Binary([]byte("last"))},
		{"void f(in(*n) void *p, int *n);", In, []uint64{0x1000, 0x1044}, omis.Binary([]byte("hel"))},
		{"void f(in(2 * n) struct x *p, int n);", In, []uint64{0x1000, 2}, omis.Binary([]byte("hell"))},
		{"void f(out(result) void *p);", Out, []uint64{0x1000}, omis.Binary([]byte("he"))},
		{"void f(out int *p);", Out, []uint64{0x1040}, omis.Int(-1)},
		{"void f(out(2) int *p);", Out, []uint64{0x1040}, omis.List(omis.Int(-1), omis.Int(3))},
		{"void f(in struct x *p);", In, []uint64{0x1000}, omis.Uint(0x1000)},
	} {
		got := decode(t, c.proto, c.now, omis.Int(2), mem, c.bits...)[0]
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s of %#x: %+v, want %+v", c.proto, c.bits, got, c.want)
		}
	}
	if s := decode(t, "void f(const char *s);", In, omis.Value{}, space(strings.Repeat("x", 9000)), 0x1000); len(s[0].Str) != MostBytes {
		t.Errorf("%d bytes of an endless string", len(s[0].Str))
	}
}

func TestLongDouble(t *testing.T) {
	for text, want := range map[string]float64{
		"\x00\x00\x00\x00\x00\x00\x00\xa0\x00\x40": 2.5,
		"\x00\x00\x00\x00\x00\x00\x00\x80\xff\xbf": -1,
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": 0,
		"\x00\x00\x00\x00\x00\x00\x00\x80\xff\x7f": math.Inf(1),
	} {
		if got := extended([]byte(text)); got != want {
			t.Errorf("%x is %v, want %v", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("int pvm_send(int tid, int msgtag);")
	f.Add("typedef unsigned long H; H *f(in(4 * n) struct s *x, inout int *n, int (*g)(void), ...);")
	f.Add("void f(out(*n) void *p, size_t *n) ; # x\n/* */ double g(float y[3]);")
	f.Fuzz(func(t *testing.T, text string) {
		functions, _ := Parse(text)
		for _, fn := range functions {
			args := make([]Arg, len(fn.Params))
			for i := range args {
				args[i].Bits = 0x1000 + uint64(i)
			}
			mem := space(text).read
			if n := len(fn.Started(args, mem)); n != len(fn.Params) {
				t.Errorf("%d values of %d parameters", n, len(fn.Params))
			}
			if n := len(fn.Ended(args, omis.Int(5), mem)); n != len(fn.Params)+1 {
				t.Errorf("%d values of a result and %d parameters", n, len(fn.Params))
			}
		}
	})
}
