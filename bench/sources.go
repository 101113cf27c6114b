package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mirador/bench/report"
	"mirador/sir/source"
)

// sourceRounds is the number of rounds in which sources are read.
const sourceRounds = 11

// measureSources measures how fast the structures of programs are read from their sources.
func measureSources(ctx context.Context, o options) (*report.Table, error) {
	t := &report.Table{Name: "sources", Title: "Structures of source files"}
	out, err := exec.CommandContext(ctx, "scripts/sourcetrees").Output()
	if err != nil {
		t.Note("scripts/sourcetrees: %v", err)
		return t, nil
	}
	for _, c := range []struct {
		tree, language string
		goal           report.Goal
	}{{"lua5.4", "C", report.AtLeast(3)}, {"leveldb", "C++", report.Goal{}}, {"libjsoup-java", "Java", report.Goal{}}, {"netcdf-fortran", "Fortran", report.Goal{}}} {
		resources, size := sourcesOf(filepath.Join(strings.TrimSpace(string(out)), c.tree))
		var speeds []float64
		for round := range sourceRounds {
			o.progress.Say("%s: round %d of %d", c.tree, round+1, sourceRounds)
			if ctx.Err() != nil {
				return t, nil
			}
			took := timed(func() error {
				_, err := source.Read(ctx, c.tree, resources)
				return err
			})
			speeds = append(speeds, float64(size)/took*1000)
		}
		t.Add(report.Row{What: c.language + ", in MB/s", Ours: report.Summary(speeds), Goal: c.goal})
	}
	t.Note("The programs are lua, leveldb, jsoup and netcdf-fortran, each read as one request on all processors, without writing the document.")
	return t, nil
}

func sourcesOf(dir string) (resources []source.Resource, size int) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || source.Language(path) == "" {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			resources = append(resources, source.Resource{In: path, Path: path, Text: text})
			size += len(text)
		}
		return err
	})
	return resources, size
}
