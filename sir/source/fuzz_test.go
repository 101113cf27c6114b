package source

import (
	"os"
	"testing"
)

// FuzzSource checks that the regions of any text are sound, in each language.
func FuzzSource(f *testing.F) {
	names := []string{"a.c", "a.cc", "a.java", "a.go", "a.f90", "a.f"}
	for i, file := range []string{"turns.c", "shop.cc", "Shop.java", "closures/main.go", "grid.f90", "fixed.f"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, language uint8) {
		r := Resource{In: "a", Path: names[int(language)%len(names)], Text: text}
		p := read(t, "a", r)
		p.Resources[0].Gaps = nil
		c := newChecker(t, []Resource{r})
		c.form = false
		c.program(&p)
	})
}
