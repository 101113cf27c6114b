package syntax

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mirador/omis"
)

// debugging are the requests of OMIS 5.3.2.
var debugging = []string{
	`: user_event_create()`,
	`thread_has_started_lib_call([p_1123],"MPI_Send") : user_event_raise([e_1],[],0)`,
	`thread_reached_addr([p_1234],0xfe08) : user_event_raise([e_1],[],0)`,
	`user_event_has_been_raised([e_1]) : print([$proc]) thread_get_backtrace([$proc],0) thread_read_int_regs([$proc],0,32)`,
	`: csr_enable([c_3]) ; csr_enable([c_1,c_2])`,
}

func TestPrintOfParse(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`:f()`, `: f()`},
		{": {a(1)\n b(2) ;c(3) }", `: { a(1) b(2) ; c(3) }`},
		{`e([],$x):f([$proc,[[]]],-0x10,010,+7,0xffffffffffffffff)`, `e([],$x) : f([$proc,[[]]],-16,8,7,18446744073709551615)`},
		{`: f(1.5,.5,2.,1e3,0x1p-1,-1.25e-7f,12l,3UL,1e999)`, `: f(1.5,0.5,2.0,1000.0,0.5,-1.25e-07,12,3,1e999)`},
		{`: f("a\n\t\"\\\101\x41\u00e4 ä",3#"),,4#ab)]` + `)`, `: f("a\n\t\"\\AAä ä",3#"),,4#ab)])`},
		{debugging[4], `: csr_enable([c_3]) ; csr_enable([c_1,c_2])`},
	} {
		r, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := Print(r); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func TestPositions(t *testing.T) {
	r, err := Parse(debugging[2])
	if err != nil {
		t.Fatal(err)
	}
	if r.Event.Pos != 0 || r.Event.Args[0].List[0].Pos != 21 || r.Actions[0].Pos != 39 {
		t.Errorf("positions of %s are %+v", debugging[2], r)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                `position 0: expected the name of a service, found the end`,
		`:`:                               `the action list is empty`,
		`f()`:                             `expected ":" before the action list, found the end`,
		`: f(1,)`:                         `position 6: expected a value, found ')'`,
		`: f(1`:                           `expected "," or ')', found the end`,
		`: f("a`:                          `string is not closed`,
		`: f("\q")`:                       `unknown escape sequence`,
		`: f("\x100")`:                    `is not a byte`,
		`: f(12x)`:                        `malformed number "12x"`,
		`: f(1_0)`:                        `malformed number "1_0"`,
		`: f(099)`:                        `malformed number "099"`,
		`: f(0x10000000000000000)`:        `does not fit into 64 bits`,
		`: f(9#ab)`:                       `binary data of 9 bytes`,
		`: f(-2#ab)`:                      `has no sign`,
		`: f($)`:                          `without the name`,
		`: f(1);`:                         `no action after ";"`,
		`: {f(1)`:                         `expected "}"`,
		`: {f(1)} g()`:                    `nothing may follow the "}"`,
		`: f(”MPI_Send”)`:                 `plain quotes`,
		`: f(1,,2) g() h(]) i(`:           `position 16: expected a value`,
		strings.Repeat("[", 100):          `expected the name`,
		`: f(` + strings.Repeat("[", 100): `nested deeper`,
	} {
		_, err := Parse(text)
		var list Errors
		if !errors.As(err, &list) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

// genValue generates any value that has a notation.
func genValue(depth int) *rapid.Generator[omis.Value] {
	name := rapid.StringMatching(`[a-z][a-z0-9]{0,4}_[0-9]{1,3}`)
	kinds := []*rapid.Generator[omis.Value]{
		rapid.Map(rapid.Int64(), omis.Int),
		rapid.Map(rapid.Uint64(), omis.Uint),
		rapid.Map(rapid.Float64(), omis.Float),
		rapid.Map(rapid.String(), omis.String),
		rapid.Map(rapid.SliceOf(rapid.Byte()), omis.Binary),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) omis.Value { return omis.String(string(b)) }),
		rapid.Map(name, func(s string) omis.Value { return omis.TokenValue(omis.Token(s)) }),
		rapid.Map(name, func(s string) omis.Value { return omis.Value{Kind: omis.KindParam, Str: s} }),
	}
	if depth > 0 {
		kinds = append(kinds, rapid.Map(rapid.SliceOfN(genValue(depth-1), 0, 4), func(vs []omis.Value) omis.Value { return omis.List(vs...) }))
	}
	return rapid.OneOf(kinds...)
}

func genCall(name string) *rapid.Generator[omis.Call] {
	return rapid.Custom(func(t *rapid.T) omis.Call {
		return omis.Call{Service: name, Args: rapid.SliceOfN(genValue(2), 0, 4).Draw(t, "args")}
	})
}

func TestParseOfPrint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &omis.Request{
			Actions: rapid.SliceOfN(genCall("action"), 1, 4).Draw(t, "actions"),
			Locked:  rapid.Bool().Draw(t, "locked"),
		}
		if rapid.Bool().Draw(t, "conditional") {
			event := genCall("event").Draw(t, "event")
			r.Event = &event
		}
		for i := range r.Actions[:len(r.Actions)-1] {
			r.Actions[i].Barrier = rapid.Bool().Draw(t, "barrier")
		}
		again, err := Parse(Print(r))
		if err != nil {
			t.Fatalf("%s: %v", Print(r), err)
		}
		if !reflect.DeepEqual(plain(again), plain(r)) {
			t.Fatalf("%s became %s", Print(r), Print(again))
		}
	})
}

// plain clears positions, and replaces empty lists by nil.
func plain(r *omis.Request) omis.Request {
	c := *r
	if r.Event != nil {
		event := plainCall(*r.Event)
		c.Event = &event
	}
	c.Actions = nil
	for _, a := range r.Actions {
		c.Actions = append(c.Actions, plainCall(a))
	}
	return c
}

func plainCall(c omis.Call) omis.Call {
	c.Pos, c.Args = 0, plainValues(c.Args)
	return c
}

func plainValues(vs []omis.Value) []omis.Value {
	var list []omis.Value
	for _, v := range vs {
		v.Pos, v.List = 0, plainValues(v.List)
		list = append(list, v)
	}
	return list
}

func TestReplyNotation(t *testing.T) {
	reply := omis.Reply{
		{{Status: omis.OK}},
		{
			{Objects: []omis.Token{"p_1"}, Values: []omis.Value{omis.List(omis.String("bin/mmul"), omis.String("8")), omis.Int(4711)}},
			{Objects: []omis.Token{"p_7"}, Status: omis.UnknownObject, Msg: "no such process token: p_7"},
		},
		{},
		{{Objects: []omis.Token{"p_1", "p_2"}, Status: omis.OSError | omis.Fatal}},
	}
	const want = `0 OMIS_OK []
1 OMIS_OK [p_1] ["bin/mmul","8"],4711
1 OMIS_UNKNOWN_OBJECT(24) [p_7] "no such process token: p_7"
2
3 OMIS_OS_ERROR|OMIS_FATAL(31) [p_1,p_2]
`
	if got := PrintReply(reply); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r, err := ParseReply("0 OMIS_OS_ERROR|OMIS_FATAL [] \"x\"\n"); err != nil || r[0][0].Status != omis.OSError|omis.Fatal {
		t.Errorf("status by name: %v, %v", r, err)
	}
	for _, text := range []string{"1 OMIS_OK []", "0 OMIS_OK", "0 OMIS_NO []", "0 OMIS_OK [] 1 2", "x", `0 OMIS_OK ["p_1"]`, "0 OMIS_OK [[p_1]]"} {
		if _, err := ParseReply(text); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func genResult() *rapid.Generator[omis.ObjectResult] {
	token := rapid.Map(rapid.IntRange(1, 99), func(n int) omis.Token { return omis.Token("p_" + string(rune('0'+n%10))) })
	return rapid.Custom(func(t *rapid.T) omis.ObjectResult {
		o := omis.ObjectResult{
			Objects: rapid.SliceOfN(token, 0, 3).Draw(t, "objects"),
			Status:  rapid.SampledFrom([]omis.Status{0, 2, 4, 6, 8, 10, 16, 24, 25, 31, 1000, 1234}).Draw(t, "status"),
		}
		if o.Status.IsError() {
			o.Msg = rapid.String().Draw(t, "message")
		} else {
			o.Values = rapid.SliceOfN(genValue(2), 0, 3).Draw(t, "values")
		}
		return o
	})
}

func TestParseReplyOfPrint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r omis.Reply
		for range rapid.IntRange(0, 4).Draw(t, "services") {
			r = append(r, rapid.SliceOfN(genResult(), 0, 3).Draw(t, "results"))
		}
		text := PrintReply(r)
		again, err := ParseReply(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if PrintReply(again) != text || len(again) != len(r) {
			t.Fatalf("%s became %s", text, PrintReply(again))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range append(debugging, `: {a("\x41",3#abc,[1.5e3,-0x7f]) ; b()}`, `: f(1,,2) g(`, `:f(0#)`) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			Print(r) // the parts that were parsed
			return
		}
		printed := Print(r)
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q: %v", printed, err)
		}
		if Print(again) != printed {
			t.Fatalf("%q became %q", printed, Print(again))
		}
	})
}

func FuzzParseReply(f *testing.F) {
	f.Add("0 OMIS_OK []\n1 OMIS_OK [p_1] [\"x\"],4711\n1 OMIS_UNKNOWN_OBJECT(24) [p_7] \"no\"\n2\n")
	f.Add("0 OMIS_CSR_TRIGGERED(10) [t_1] c_1\n1 OMIS_OK [] 3#\n\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReply(text)
		if err != nil {
			return
		}
		printed := PrintReply(r)
		again, err := ParseReply(printed)
		if err != nil || PrintReply(again) != printed {
			t.Fatalf("%q became %q: %v", printed, PrintReply(again), err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range debugging {
			if _, err := Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkParseOne(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(debugging[3]); err != nil {
			b.Fatal(err)
		}
	}
}
