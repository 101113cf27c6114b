// Package source reads the structure of programs from source files: units, regions inside them, and
// what is not understood. Ids are those of the machine code that compilers make without optimisation.
//
// The command line may import it; it imports sir, and the readers of languages below it. Sources are
// untrusted: sizes, depth and numbers of regions are limited, and reading ends with its context.
// Read may be called concurrently. It parses files on all processors, by goroutines that end before it
// returns.
package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"mirador/sir"
	"mirador/sir/source/fortran"
	"mirador/sir/source/golang"
	"mirador/sir/source/grammar"
	"mirador/sir/source/outline"
)

// Resource is a source file.
type Resource struct {
	In, Out string // as the request names it
	Path    string // in positions
	Text    []byte
	// Import is the import path of the package of a Go file, "" if it is not known.
	Import string
}

// Limits of the sources of a program.
const (
	MostBytes = 16 << 20 // of one file
	MostTotal = 64 << 20
	MostFiles = 10_000
)

// languages by the endings of files.
var languages = map[string]string{
	".c": "c", ".h": "c", ".C": "c++", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".c++": "c++", ".hh": "c++", ".hpp": "c++", ".hxx": "c++", ".ipp": "c++", ".tcc": "c++",
	".java": "java", ".go": "go", ".f": "fortran", ".for": "fortran", ".ftn": "fortran", ".f77": "fortran", ".fpp": "fortran",
	".f90": "fortran", ".f95": "fortran", ".f03": "fortran", ".f08": "fortran", ".f18": "fortran",
}

// Language returns the language of a file by its name, "" if it is no source file.
func Language(name string) string {
	if l := languages[path.Ext(name)]; l != "" {
		return l
	}
	return languages[strings.ToLower(path.Ext(name))]
}

// onlyCPP begin lines that only C++ has. A name follows those with a space.
var onlyCPP = []string{"class ", "namespace", "template", "using ", "public:", "private:"}

// isCPP reports whether a text has what only C++ has.
func isCPP(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimLeft(line, " \t")
		for _, word := range onlyCPP {
			rest, ok := bytes.CutPrefix(line, []byte(strings.TrimRight(word, " ")))
			after := bytes.TrimLeft(rest, " \t")
			switch {
			case !ok:
			case word == "template":
				ok = bytes.HasPrefix(after, []byte("<"))
			case word == "namespace":
				ok = !beginsWord(rest)
			case strings.HasSuffix(word, " "):
				ok = len(after) < len(rest) && beginsWord(after)
			}
			if ok {
				return true
			}
		}
		for {
			before, after, ok := bytes.Cut(line, []byte("::"))
			if !ok {
				break
			}
			if len(before) > 0 && beginsWord(before[len(before)-1:]) && beginsWord(bytes.TrimPrefix(after, []byte("~"))) {
				return true
			}
			line = after
		}
	}
	return false
}

func beginsWord(text []byte) bool {
	return len(text) > 0 && (text[0] == '_' || text[0] >= '0' && text[0] <= '9' || text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z')
}

// languageOf returns the language of a source. Headers of C++ may have the ending of those of C.
func languageOf(r *Resource) string {
	l := Language(r.Path)
	if path.Ext(r.Path) == ".h" && isCPP(r.Text[:min(len(r.Text), MostBytes)]) {
		l = "c++"
	}
	return l
}

// ProgramOf returns the name of the program that a source file is compiled to, if nothing else tells
// it: that of the file.
func ProgramOf(name string) string {
	base := path.Base(name)
	return cmp.Or(strings.TrimSuffix(base, path.Ext(base)), base)
}

// Error is the reason why a resource is not read.
type Error struct {
	In  string
	Msg string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot read the structure of %s: %s", e.In, e.Msg)
}

// Room counts what the sources of a program take of its limits.
type Room struct{ files, bytes int }

// Most returns how many bytes the next source may have.
func (r *Room) Most() int { return min(MostBytes, MostTotal-r.bytes) }

// Take counts a source. The error, an *Error, says which limit the source exceeds.
func (r *Room) Take(in string, size int) error {
	switch {
	case r.files == MostFiles:
		return &Error{in, fmt.Sprintf("a request has at most %d sources: name the others in another request", MostFiles)}
	case size > MostBytes:
		return &Error{in, fmt.Sprintf("it has more than %d MB: split the file, or leave it out", MostBytes>>20)}
	case size > r.Most():
		return &Error{in, fmt.Sprintf("the sources of a request have more than %d MB: name the others in another request", MostTotal>>20)}
	}
	r.files++
	r.bytes += size
	return nil
}

// Read returns the structure of the program that source files are compiled to. The error is an *Error,
// or that of ctx.
func Read(ctx context.Context, program string, resources []Resource) (sir.Program, error) {
	return ReadWatched(ctx, program, resources, func(int, bool) {})
}

// ReadWatched is Read, and calls watch when the work on a resource, given by its number, begins and when it ends. It calls
// watch concurrently, and more than once for each resource.
func ReadWatched(ctx context.Context, program string, resources []Resource, watch func(number int, begins bool)) (sir.Program, error) {
	files := make([]*outline.File, len(resources))
	var room Room
	for i, r := range resources {
		language := languageOf(&r)
		if language == "" {
			return sir.Program{}, &Error{r.In, "its name does not tell a language that is understood"}
		}
		if err := room.Take(r.In, len(r.Text)); err != nil {
			return sir.Program{}, err
		}
		files[i] = &outline.File{In: r.In, Out: r.Out, Path: r.Path, Language: language, Text: r.Text}
	}
	if err := outlines(ctx, files, resources, watch); err != nil {
		return sir.Program{}, err
	}
	return outline.Program(program, files), nil
}

// outlines finds the regions of all files. What files share is collected first.
func outlines(ctx context.Context, files []*outline.File, resources []Resource, watch func(number int, begins bool)) error {
	var procedures fortran.Facts
	var shared grammar.Facts
	packages := map[string]*golang.Facts{}
	parsed := make([]*golang.Parsed, len(files))
	paths := make([]string, len(files))
	for i, f := range files {
		watch(i, true)
		switch f.Language {
		case "fortran":
			procedures.Declare(f)
		case "c", "c++", "java":
			shared.Declare(f)
		case "go":
			p := golang.Parse(f)
			parsed[i], paths[i] = p, importPath(p.Package(), resources[i].Import)
			if packages[paths[i]] == nil {
				packages[paths[i]] = &golang.Facts{}
			}
			packages[paths[i]].Declare(p)
		}
		watch(i, false)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	shared.Declared()
	for i, f := range files { // the compiler numbers functions of several files
		if f.Language == "go" {
			watch(i, true)
			parsed[i].Outline(paths[i], packages[paths[i]])
			watch(i, false)
		}
	}
	return eachFile(ctx, len(files), func(i int) error {
		watch(i, true)
		defer watch(i, false)
		switch f := files[i]; f.Language {
		case "fortran":
			fortran.Parse(f, &procedures)
		case "c", "c++", "java":
			return grammar.Parse(ctx, f, &shared)
		}
		return nil
	})
}

// eachFile calls a function for each file, on all processors, until one fails.
func eachFile(ctx context.Context, count int, do func(i int) error) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make([]error, runtime.GOMAXPROCS(0))
	for w := range failed {
		workers.Go(func() {
			for ctx.Err() == nil && failed[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= count {
					return
				}
				failed[w] = do(i)
			}
		})
	}
	workers.Wait()
	return cmp.Or(ctx.Err(), errors.Join(failed...))
}

// importPath returns the path of a package in the symbols of a program.
func importPath(name, path string) string {
	if name == "main" {
		return name
	}
	return cmp.Or(path, name)
}
