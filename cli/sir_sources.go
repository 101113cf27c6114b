package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"mirador/sir"
	"mirador/sir/source"
)

// readSources reads the structure of the program that source files are compiled to, and reports what was
// not understood.
func readSources(ctx context.Context, program string, files []string, errs io.Writer) (sir.Program, error) {
	var resources []source.Resource
	for _, file := range files {
		full, err := filepath.Abs(file)
		if err != nil {
			return sir.Program{}, err
		}
		text, err := readAtMost(full, source.MostBytes+1)
		if err != nil {
			return sir.Program{}, fmt.Errorf("cannot read the structure of %s: %w", file, err)
		}
		resources = append(resources, source.Resource{In: "file://" + full, Path: full, Text: text, Import: importPath(full)})
	}
	p, err := source.Read(ctx, cmp.Or(program, source.ProgramOf(files[0])), resources)
	if err != nil {
		return p, err
	}
	for i, r := range p.Resources {
		for _, g := range r.Gaps {
			fmt.Fprintf(errs, "mirador: %s:%d:%d: %s\n", files[i], g.Line, g.Column, g.Reason)
		}
		if r.MoreGaps > 0 {
			fmt.Fprintf(errs, "mirador: %s: %d other parts were not understood\n", files[i], r.MoreGaps)
		}
	}
	return p, nil
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// importPath returns the import path of the package of a Go file, "" if no module around it tells it.
func importPath(file string) string {
	if filepath.Ext(file) != ".go" {
		return ""
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		const most = 1 << 20
		if text, err := readAtMost(filepath.Join(dir, "go.mod"), most); err == nil {
			within, _ := filepath.Rel(dir, filepath.Dir(file))
			return path.Join(modfile.ModulePath(text), filepath.ToSlash(within))
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// divide separates source files from programs.
func divide(files []string) (sources, programs []string) {
	for _, f := range files {
		if source.Language(f) != "" {
			sources = append(sources, f)
		} else {
			programs = append(programs, f)
		}
	}
	return sources, programs
}
