package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mirador/bench/report"
)

// structureRounds is the number of rounds in which programs are read.
const structureRounds = 7

// measureStructures measures how fast the structures of programs are read from machine code and debug information. The
// reference prints the debug information and nothing else.
func measureStructures(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "structures", Title: "Structures of programs from machine code, beside objdump --dwarf=info"}
	dir, err := os.MkdirTemp("", "mirador-bench-structures-")
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	o.progress.Say("building leveldb")
	library, err := buildLevelDB(ctx, dir)
	if err != nil {
		t.Note("leveldb: %v", err)
	}
	for _, program := range []struct{ what, path string }{{"Go, mirador", o.mirador}, {"C++, leveldb", library}} {
		if program.path != "" && ctx.Err() == nil {
			if err := measureStructure(ctx, o, t, program.what, program.path); err != nil {
				return t, err
			}
		}
	}
	t.Note("A document with all regions is written to /dev/null: functions, and the loops, calls and inlined functions inside them, with the places of their probes. The rows of CPU time are the sums of all processors.")
	return t, nil
}

// usage is what a command used.
type usage struct{ time, cpu, memory float64 }

func measureStructure(ctx context.Context, o options, t *report.Table, what, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	size := float64(info.Size())
	what = fmt.Sprintf("%s (%.0f MB)", what, size/1e6)
	commands := [][]string{
		{o.mirador, "sir", "--depth", "99", "-o", os.DevNull, path},
		{o.mirador, "sir", "-o", os.DevNull, path},
		{"objdump", "--dwarf=info", path},
	}
	used := make([][]usage, len(commands))
	for round := range structureRounds {
		o.progress.Say("%s: round %d of %d", what, round+1, structureRounds)
		for i, c := range commands { // by turns, because other load changes
			if ctx.Err() != nil {
				return nil
			}
			u, err := use(ctx, c)
			if err != nil {
				return err
			}
			used[i] = append(used[i], u)
		}
	}
	stat := func(i int, of func(usage) float64) report.Stat {
		var all []float64
		for _, u := range used[i] {
			all = append(all, of(u))
		}
		return report.Summary(all)
	}
	elapsed, cpu := func(u usage) float64 { return u.time }, func(u usage) float64 { return u.cpu }
	reference, processor := stat(2, elapsed), stat(2, cpu)
	row := func(name string, ours report.Stat, than *report.Stat, goal report.Goal) {
		t.Add(report.Row{What: what + ": " + name, Unit: report.Nanoseconds, Ours: ours, Than: "objdump", Reference: than, Goal: goal})
	}
	row("all regions", stat(0, elapsed), &reference, report.Within(1))
	row("all regions"+inCPU, stat(0, cpu), &processor, report.Goal{})
	row("functions", stat(1, elapsed), &reference, report.Within(0.1))
	row("functions"+inCPU, stat(1, cpu), &processor, report.Goal{})
	t.Add(report.Row{What: what + ": memory for all regions, times the file", Ours: stat(0, func(u usage) float64 { return u.memory / size }), Goal: report.AtMost(10)})
	return nil
}

// use runs a command.
func use(ctx context.Context, command []string) (u usage, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return u, err
	}
	defer null.Close()
	cmd.Stdout = null
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return u, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	u.time = float64(time.Since(began))
	u.cpu = float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.memory = float64(r.Maxrss) * 1024
	}
	return u, nil
}

// buildLevelDB compiles the sources of leveldb with debug information.
func buildLevelDB(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "scripts/sourcetrees").Output()
	if err != nil {
		return "", fmt.Errorf("scripts/sourcetrees: %w", err)
	}
	tree := filepath.Join(strings.TrimSpace(string(out)), "leveldb")
	var sources []string
	for _, folder := range []string{"db", "table", "util"} {
		found, _ := filepath.Glob(filepath.Join(tree, folder, "*.cc"))
		sources = append(sources, found...)
	}
	sources = slices.DeleteFunc(sources, func(path string) bool {
		name := filepath.Base(path)
		return strings.Contains(name, "test") || strings.Contains(name, "windows") || name == "leveldbutil.cc"
	})
	if len(sources) == 0 {
		return "", errors.New("no sources")
	}
	library := filepath.Join(dir, "libleveldb.so")
	arguments := []string{"-std=c++17", "-O2", "-g", "-fPIC", "-shared", "-DLEVELDB_PLATFORM_POSIX", "-I", tree, "-I", filepath.Join(tree, "include"), "-o", library}
	if text, err := exec.CommandContext(ctx, "g++", append(arguments, sources...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("g++: %w: %.200s", err, text)
	}
	return library, nil
}
