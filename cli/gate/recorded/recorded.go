// Package recorded reads and writes the values of gates in files: measurement documents, and the
// Go benchmark format. It knows no gateway and judges nothing. The gate and the command line import it;
// it starts no goroutines.
package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"mirador/cli/gate/request"
)

// Values are the recorded values of each limit of a gate.
type Values struct {
	ByLimit [][]float64
	// Benchmarks reports that the values are those of Go benchmarks, and not of documents.
	Benchmarks bool
}

const (
	mostBytes  = 64 << 20 // of a file
	mostValues = 200      // of a limit; to compute the exact interval of more takes long, and gains little
)

// Read reads the values of a gate's limits from files and from the files in directories. All
// are documents, or all are benchmarks.
func Read(paths []string, gate *request.File) (*Values, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	all := &Values{ByLimit: make([][]float64, len(gate.Limits))}
	for n, path := range files {
		text, err := readFile(path)
		if err != nil {
			return nil, err
		}
		benchmarks := !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n\ufeff"), []byte("<"))
		if n > 0 && benchmarks != all.Benchmarks {
			return nil, fmt.Errorf("%s is no file of the same kind as %s: give measurement documents only, or outputs of go test -bench only", path, files[0])
		}
		if all.Benchmarks = benchmarks; benchmarks {
			err = all.readBenchmarks(text, path, gate)
		} else {
			err = all.readDocuments(text, gate)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

// expand replaces directories by the files in them.
func expand(paths []string) (files []string, err error) {
	for _, path := range paths {
		entries, err := os.ReadDir(path)
		if err != nil { // no directory, or none that can be read: the file's reader says why
			files = append(files, path)
			continue
		}
		before := len(files)
		for _, e := range entries {
			if e.Type() == fs.FileMode(0) && e.Name()[0] != '.' {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("the directory %s contains no files", path)
		}
	}
	return files, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Size() > mostBytes:
		return nil, fmt.Errorf("%s has %d MB, more than the %d MB that are read", path, info.Size()>>20, mostBytes>>20)
	}
	return os.ReadFile(path)
}

// finite returns an error for what is no number: with such values, statistical tests do not end.
func finite(value float64) error {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("a value is %g, which is no number", value)
	}
	return nil
}

// add adds a value.
func (v *Values) add(i int, value float64) error {
	if err := finite(value); err != nil {
		return err
	}
	if len(v.ByLimit[i]) == mostValues {
		return fmt.Errorf("there are more than %d values of a limit; give fewer runs", mostValues)
	}
	v.ByLimit[i] = append(v.ByLimit[i], value)
	return nil
}

// Only returns the part of a gate for which these values are, and its values.
func (v *Values) Only(gate *request.File) (*request.File, *Values) {
	part := &Values{Benchmarks: v.Benchmarks}
	for i, l := range gate.Limits {
		if (l.Benchmark != "") == v.Benchmarks {
			part.ByLimit = append(part.ByLimit, v.ByLimit[i])
		}
	}
	return gate.Select(v.Benchmarks), part
}

// Missing returns an error that names the first limit without a value.
func (v *Values) Missing(gate *request.File, in string) error {
	for i, l := range gate.Limits {
		if len(v.ByLimit[i]) > 0 {
			continue
		}
		if l.Benchmark != "" {
			return fmt.Errorf("line %d of the gate: %s has no %s of the benchmark %s%s", l.Pos.Line, in, l.Metric, l.Benchmark, hint(l.Metric))
		}
		return fmt.Errorf("line %d of the gate: %s has no value of %s", l.Pos.Line, in, l.Metric)
	}
	return nil
}

func hint(unit string) string {
	if slices.Contains([]string{"B/op", "allocs/op"}, unit) {
		return "; run go test with -benchmem"
	}
	return ""
}

var errOther = errors.New("it is no measurement document of this gate")
