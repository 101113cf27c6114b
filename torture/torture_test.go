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

// TestTorture runs "make torture" for a short time. It logs the seed, which is new in each run.
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

// calm starts a victim without probes.
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
		t.Cleanup(v.Kill)
		return v, command
	}
	t.Fatal("there is no ", name)
	return nil, nil
}

// TestUnchanged checks that unchanged finds a single changed byte, and accepts the original byte
// after it was written back.
func TestUnchanged(t *testing.T) {
	v, _ := calm(t, "bash")
	c, err := readCode(v.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.unchanged(v.PID); err != nil {
		t.Error(err)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", v.PID), os.O_RDWR, 0)
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
		err := c.unchanged(v.PID)
		if changed := b[0] != last.bytes[len(last.bytes)-1]; changed != (err != nil) {
			t.Errorf("changed: %v; unchanged returns %v", changed, err)
		}
	}
}

// TestCountWithGDB checks that gdb and a program count the same calls.
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

// TestChecker checks that wrong results and wrong counts are detected.
func TestChecker(t *testing.T) {
	v, _ := calm(t, "bash")
	j := &checker{victim: v, tool: &tool{gateway: &gateway{}}, tally: &tally{}}
	j.probes = []*probe{{function: function{name: "f"}, active: true}}
	v.calm = "else"
	j.rounds = &(&trial{}).rounds
	if err := j.round(context.Background()); err == nil || !strings.Contains(err.Error(), "want else") {
		t.Errorf("a wrong result: %v", err)
	}
	v.Cmd.Process.Kill()
	if err := j.round(context.Background()); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("a victim that died: %v", err)
	}
}
