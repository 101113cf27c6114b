package binary

import (
	"os/exec"
	"path/filepath"
	"testing"

	"mirador/sir"
)

// expect counts executions of regions with gdb, and compares them with the numbers that follow from the
// program's source.
func expect(t *testing.T, im *Image, functions []string, want map[string]int) {
	t.Helper()
	var regions []sir.Region
	var stops []stop
	for _, name := range functions {
		u := unit(t, im, name)
		inside, err := im.Inside(t.Context(), &u)
		if err != nil {
			t.Fatal(err)
		}
		p := sir.Program{Regions: inside}
		for r := range p.All() {
			regions = append(regions, *r)
			stops = append(stops, stopsOf(r)...)
		}
	}
	at := stopped(t, im.Path(), stops)
	found := map[string]int{}
	for _, r := range regions {
		if _, wanted := want[r.ID]; !wanted {
			continue
		}
		if found[r.ID] = 0; r.Code.Uncounted != "" {
			t.Errorf("%s: %s", r.ID, r.Code.Uncounted)
		}
		for _, s := range stopsOf(&r) {
			found[r.ID] += at[s]
		}
	}
	for id, n := range want {
		if got, ok := found[id]; !ok || got != n {
			t.Errorf("%s is executed %d times (%v), want %d", id, got, ok, n)
		}
	}
	if t.Failed() {
		for _, r := range regions {
			t.Logf("%s in line %d of %s", r.ID, r.Line, r.File)
		}
	}
}

func TestLoopsOfGo(t *testing.T) {
	t.Setenv("GODEBUG", "asyncpreemptoff=1") // gdb counts a hit twice that a signal interrupts
	expect(t, builtGo(t, "looping"), []string{"main.work", "main.sum", "main.kinds"}, map[string]int{
		"looping:main.work/loop1": 5, "looping:main.work/loop1/body": 10, "looping:main.work/loop1/loop1": 8,
		"looping:main.work/loop1/loop1/body": 33, "looping:main.work/loop1/loop1/call.main.step": 33,
		"looping:main.sum/loop1": 2, "looping:main.sum/loop1/body": 3, "looping:main.sum/loop2": 2, "looping:main.sum/loop2/body": 2,
		"looping:main.kinds/loop1": 2, "looping:main.kinds/loop1/body": 15, "looping:main.kinds/loop1/call.main.step": 2,
	})
}

// TestLoopsOfRust compares all counts of code without optimisation, except the iterations of a loop whose end is another one: its code
// may begin with its test or with its body.
func TestLoopsOfRust(t *testing.T) {
	want := map[string]int{
		"looping:work/loop1": 5, "looping:work/loop1/loop1": 8, "looping:work/loop1/loop1/body": 33, "looping:work/loop1/loop1/call.step": 33,
		"looping:kinds/loop1": 2,
	}
	compile := func(level string) *Image {
		program := filepath.Join(t.TempDir(), "looping")
		if out, err := exec.Command("rustc", "-g", "-C", "opt-level="+level, "-C", "relocation-model=static", "-o", program, "testdata/looping.rs").CombinedOutput(); err != nil {
			t.Fatalf("rustc: %v\n%s", err, out)
		}
		return open(t, program)
	}
	expect(t, compile("2"), []string{"work", "kinds"}, want)
	want["looping:kinds/loop1/body"] = 11
	expect(t, compile("0"), []string{"work", "kinds"}, want)
}
