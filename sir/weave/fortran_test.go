package weave_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir/weave"
)

// short is a text in which the names of markers are short: those of the first region are b1 and e1.
func short(text string) string {
	known := map[string]int{}
	return regexp.MustCompile(`call mirador([be])([0-9a-f]{16})|call miradorz`).ReplaceAllStringFunc(text, func(call string) string {
		if call == "call miradorz" {
			return "z"
		}
		name := call[len("call miradorb"):]
		if known[name] == 0 {
			known[name] = len(known) + 1
		}
		return fmt.Sprintf("%c%d", call[len("call mirador")], known[name])
	})
}

// TestFortranText checks what is written into sources in Fortran: lines keep their numbers, and what is in a line keeps
// its column.
func TestFortranText(t *testing.T) {
	for _, c := range []struct{ path, id, text, want string }{
		{"p.f90", "p:f_/loop1", "subroutine f\n  do i=1,2\n  end do ! x\nend\n", "subroutine f\n  b1\n# 2\n  do i=1,2\n  end do ! x\ne1\nz\n# 4\nend\n"},
		{"p.f90", "p:f_", "subroutine f\nend", "subroutine f\nb1\ne1\nz\n# 2\nend"},
		{"p.f90", "p:f_/call.g_", "subroutine f\nx = 1; call g ; y = 1\nend", "subroutine f\nx = 1; \nb1\n# 2\n       call g ; \ne1\n# 2\n                y = 1\nz\n# 3\nend"},
		{"p.f90", "p:f_/if1.then", "subroutine f\nif (a) x = 1\nend", "subroutine f\nif (a) then\nb1\n# 2\n       x = 1\ne1\nend if\nz\n# 3\nend"},
		{"p.f90", "p:f_/loop1", "subroutine f\ndo\n  read (*, *, end=9) &\n    i\nend do\n9 end", "subroutine f\nb1\n# 2\ndo\n  read (*, *, end=&\n&99999&\n# 3\n&) &\n    i\ngoto 99998\n99999 e1\ngoto 9\n99998 continue\n# 5\nend do\ne1\n# 6\n9 z\n# 6\n  end"},
		{"p.f", "p:f_/loop1", "      SUBROUTINE F\n   10 DO 20 I=1,2                                                       SEQUENCE\n         IF (I.EQ.2) GOTO 30\n   20 CONTINUE\n   30 RETURN\n      END\n",
			"      SUBROUTINE F\n   10 b1\n# 2\n      DO 20 I=1,2                                                       SEQUENCE\n         IF (I.EQ.2) then\n      e1\n# 3\n                     GOTO 30\n      end if\n# 4\n   20 CONTINUE\n      e1\n# 5\n   30 z\n# 5\n      RETURN\n      z\n# 6\n      END\n"},
		{"p.f", "p:f_/call.g_", "      SUBROUTINE F\n      CALL G(*20)\n   20 END\n", "      SUBROUTINE F\n      b1\n# 2\n      CALL G(*\n     &99999\n# 2\n     &          )\n      goto 99998\n99999 e1\n      goto 20\n99998 continue\n      e1\n# 3\n   20 z\n# 3\n      END\n"},
		{"p.f", "p:f_/io1", "\tSUBROUTINE F\n20\tPRINT *,\n\t1 2\n\tEND\n", "\tSUBROUTINE F\n20\tb1\n# 2\n  \tPRINT *,\n\t1 2\n      e1\n      z\n# 4\n\tEND\n"},
		{"p.f90", "p:f_/openmp1", "subroutine f\n!$ integer :: n\n  !$omp parallel do\n  do i = 1, 2\n  end do\nend", "subroutine f\n!$ integer :: n\n  b1\n# 3\n  !$omp parallel do\n  do i = 1, 2\n  end do\ne1\nz\n# 6\nend"},
		{"p.f90", "p:f_", "subroutine f\n!$ integer :: n\n  x = 1\nend", "subroutine f\n!$ integer :: n\n  b1\n# 3\n  x = 1\ne1\nz\n# 4\nend"},
		{"p.f90", "p:f_", "subroutine f\n  g(x) = x + 1\n#ifdef A\n  real :: h(2)\n#endif\n  h(i) = g(x)\nend", "subroutine f\n  g(x) = x + 1\n#ifdef A\n  real :: h(2)\n#endif\n  b1\n# 6\n  h(i) = g(x)\ne1\nz\n# 7\nend"},
	} {
		w, ids := weaving(t, c.path, c.text)
		files, err := w.Weave([]string{c.id})
		if err != nil {
			t.Errorf("%q: %v (regions are %v)", c.text, err, ids)
			continue
		}
		if got := short(string(files[0].Text)); got != c.want {
			t.Errorf("%q is woven as\n%s\nwant\n%s", c.text, got, c.want)
		}
		if beside := string(files[1].Text); files[1].Suffix != ".mirador.s" || strings.Count(beside, "mirador_region miradorb") != 1 || !strings.Contains(beside, `:`+c.id+`"`) {
			t.Errorf("beside the source is %s", beside)
		}
	}
}

// TestFortranRefusals checks that what cannot be woven in Fortran is refused with the reason.
func TestFortranRefusals(t *testing.T) {
	for _, c := range []struct{ path, id, text, why string }{
		{"p.f90", "p:f_", "pure subroutine f\nend", "is pure or elemental"},
		{"p.f90", "p:f_/if1", "impure elemental subroutine f(a)\nreal, intent(in) :: a\nif (a > 1) then\nend if\nend", ""},
		{"p.f90", "p:m", "module m\nend module", "not executed as a whole"},
		{"p.f90", "p:f_", "subroutine f\nentry g\nend", "another beginning, at line 2"},
		{"p.f90", "p:f_/loop1/body", "subroutine f\ndo concurrent (i=1:2)\nx(i) = 1\nend do\nend", "in DO CONCURRENT"},
		{"p.f90", "p:f_/loop1", "subroutine f\nprint *, (i, i=1, 2)\nend", "no statement"},
		{"p.f90", "p:f_/loop1", "subroutine f\n!$omp do\ndo i=1,2\nend do\nend", "needs its statement unchanged"},
		{"p.f90", "p:f_/loop1", "subroutine f\n!GCC$ unroll 4\ndo i=1,2\nend do\nend", "a directive of the compiler"},
		{"p.f90", "p:f_/loop1/loop1", "subroutine f\n!$omp do collapse(2)\ndo i=1,2\ndo j=1,2\nend do\nend do\nend", "makes one loop"},
		{"p.f90", "p:f_/loop1", "subroutine f\nimplicit none (type, external)\ninteger i\ndo i=1,2\nend do\nend", "each procedure is declared"},
		{"p.f90", "p:f_/loop1", "subroutine f\ndo i=1,2\ninclude 'x.inc'\nend do\nend", "a file is included in it, at line 3"},
		{"p.F90", "p:f_/loop1", "#define CHECK if (n > 1) return\nsubroutine f\ndo i=1,2\nCHECK\nend do\nend", "the macro CHECK"},
		{"p.F90", "p:f_/loop1", "subroutine f\n#ifdef A\ndo i=1,2\n#else\ndo i=1,3\n#endif\nend do\nend", "conditional of the preprocessor"},
		{"p.F90", "p:f_", "subroutine f\n#ifdef A\ninteger i\ni = 1\n#endif\nend", "end in a conditional"},
		{"p.f90", "p:f_/loop1", "subroutine f\ndo i=1,2\ngoto n\nend do\nend", "a label in a variable, at line 3"},
		{"p.f", "p:f_/loop1/loop1", "      SUBROUTINE F\n      DO 10 I=1,2\n      DO 10 J=1,2\n   10 CONTINUE\n      END", "the loop around it ends with the same statement"},
		{"p.f", "p:f_/loop1/body", "      SUBROUTINE F\n      DO 10 I=1,2\n   10 CALL G\n      END", "end the loop with CONTINUE"},
		{"p.f", "p:f_/loop1/call.g_", "      SUBROUTINE F\n      DO 10 I=1,2\n   10 CALL G\n      END", "end the loop with CONTINUE"},
		{"p.f", "p:f_/loop1", "      SUBROUTINE F\n      DO 10 I=1,2\n   10 IF (I.EQ.2) GOTO 20\n   20 END", "jumps out of it"},
		{"p.f", "p:f_/loop1", "      SUBROUTINE F\n      GOTO 10\n      DO 20 I=1,2\n   10 X = 1\n   20 CONTINUE\n      END", "a jump leads into it, at line 2"},
		{"p.F", "p:f_/call.g_", "      SUBROUTINE F\n      CALL G(A,\n#ifdef X\n     & B,\n#endif\n     & C)\n      END", "inside its last statement"},
		{"p.f90", "p:__m_MOD_f", "submodule (m) s\ncontains\nmodule procedure f\nend procedure\nend submodule", "repeat the interface"},
		{"p.f90", "p:__m_MOD_f", "module m\ncontains\nsubroutine f\na(i) = i\nend subroutine\nend module", "an array of another unit"},
	} {
		w, ids := weaving(t, c.path, c.text)
		if !w.Has(c.id) {
			t.Errorf("%q has the regions %v", c.text, ids)
			continue
		}
		var no *weave.Refusal
		if err := w.Check(c.id); c.why == "" && err != nil || c.why != "" && (!errors.As(err, &no) || no.ID != c.id || !strings.Contains(no.Why, c.why)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.why)
		}
	}
	w, _ := weaving(t, "p.f90", "subroutine f\nend")
	files, err := w.Weave([]string{"p:f_"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := weave.New("0123456789abcdef", nil, []weave.Source{{Path: "p.f90", Language: "fortran", Text: files[0].Text}}); err == nil || !strings.Contains(err.Error(), "has woven regions already") {
		t.Errorf("a woven source: %v", err)
	}
}

// FuzzFortranWeave checks that any text can be woven: what is written contains the text, but for labels that it replaces.
func FuzzFortranWeave(f *testing.F) {
	for _, name := range []string{"ways.f90", "ways.f"} {
		text, err := os.ReadFile(filepath.Join("..", "binary", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{"do 1 i=1,2\n!$omp do\n!$omp atomic\nif(a)then;x='&\n&';1 continue\nend", "\tif(a)2,1\nc$omp end do\n     1\tdo\n#if 0\n#else\n      end", "if(a)goto 1;1 end", "program p\nif(a)return;end"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, path := range []string{"p.f90", "p.f"} {
			if strings.Contains(text, "call miradorb") {
				return
			}
			w, ids := weaving(t, path, text)
			good := map[string]bool{}
			for _, id := range ids {
				if w.Check(id) == nil {
					good[id] = true
				}
			}
			files, err := w.Weave(slices.Sorted(maps.Keys(good)))
			if err != nil {
				t.Fatalf("%q: regions can be woven one by one, not together: %v", text, err)
			}
			left := files[0].Text
			if bytes.Contains(left, []byte("99999")) {
				continue
			}
			for i := range len(text) {
				at := bytes.IndexByte(left, text[i])
				if at < 0 {
					t.Fatalf("%q lacks byte %d: %q", files[0].Text, i, text)
				}
				left = left[at+1:]
			}
		}
	})
}
