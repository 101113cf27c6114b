//go:build linux && amd64

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTorture is make torture, for a short while. The seed is a new one each time,
// and is told.
func TestTorture(t *testing.T) {
	mirador := filepath.Join(t.TempDir(), "mirador")
	if out, err := exec.Command("go", "build", "-o", mirador, "mirador").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	programs, seed := []string{"bash", "c++", "c", "go"}, uint64(time.Now().UnixNano()%1e6)
	for name, p := range map[string]plan{
		"everywhere": {kills: 0},
		"killed":     {kills: 3, placements: "trap"},
	} {
		t.Run(name, func(t *testing.T) {
			var progress strings.Builder
			p.mirador, p.time, p.programs, p.most, p.seed, p.progress = mirador, 6*time.Second, programs, 60, seed, &progress
			if err := p.report(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, &progress)
			}
			t.Log(progress.String())
		})
	}
}

// calm starts a victim that nobody is going to torment.
func calm(t *testing.T, name string) (*victim, []string) {
	t.Helper()
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		command, err := k.build(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		v, err := start(k, command)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(v.kill)
		return v, command
	}
	t.Fatal("there is no ", name)
	return nil, nil
}

// TestUnchanged: a single byte is found, and its like is not.
func TestUnchanged(t *testing.T) {
	v, _ := calm(t, "bash")
	c, err := readCode(v.pid())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.unchanged(v.pid()); err != nil {
		t.Error(err)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", v.pid()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	last := c[len(c)-1]
	at := int64(last.start) + int64(len(last.bytes)) - 1
	for _, b := range [][]byte{{^last.bytes[len(last.bytes)-1]}, {last.bytes[len(last.bytes)-1]}} {
		if _, err := memory.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		err := c.unchanged(v.pid())
		if changed := b[0] != last.bytes[len(last.bytes)-1]; changed != (err != nil) {
			t.Errorf("changed: %v, and found is %v", changed, err)
		}
	}
}

// TestCountWithGDB: gdb counts what a program counts itself.
func TestCountWithGDB(t *testing.T) {
	v, command := calm(t, "c++")
	_, own, err := v.round(time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := v.kind
	for name := range own {
		k.counted = append(k.counted, name)
	}
	counts, err := countWithGDB(k, command, t.TempDir())
	if err != nil || !maps.Equal(counts, own) {
		t.Errorf("gdb has counted %v, the program %v; %v", counts, own, err)
	}
}

// TestJudge: a result and a count that are wrong are noticed.
func TestJudge(t *testing.T) {
	v, _ := calm(t, "bash")
	j := &judge{victim: v, tool: &tool{gateway: &gateway{}}, tally: &tally{}}
	j.probes = []*probe{{function: function{name: "f"}, active: true}}
	v.calm = "else"
	j.rounds = &(&ordeal{}).rounds
	if err := j.round(context.Background()); err == nil || !strings.Contains(err.Error(), "not else") {
		t.Errorf("a wrong result: %v", err)
	}
	v.cmd.Process.Kill()
	if err := j.round(context.Background()); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("a victim that died: %v", err)
	}
}
