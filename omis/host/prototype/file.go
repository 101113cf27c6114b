package prototype

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Suffix ends the names of prototype files; in a directory, only these are read.
const Suffix = ".prototypes"

// File is a prototype file.
type File struct{ Name, Text string }

// ReadFiles reads files and directories. It reports all read errors together.
func ReadFiles(paths []string) ([]File, error) {
	var files []File
	var errs []error
	for _, path := range paths {
		names, err := namesIn(path)
		errs = append(errs, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			errs = append(errs, err)
			files = append(files, File{name, string(text)})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cannot read the prototypes: %w", err)
	}
	return files, nil
}

// namesIn returns the prototype files in a directory, or path itself if it is not a
// directory.
func namesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, nil // ReadFiles reports it if the file cannot be read
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == Suffix {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	if names == nil {
		return nil, fmt.Errorf("the folder %s has no file that ends in %s", path, Suffix)
	}
	return names, nil
}

// Parse parses the file. It returns all errors joined; each begins with FILE:LINE:COLUMN,
// like those of a compiler.
func (f File) Parse() ([]Func, error) {
	functions, err := Parse(f.Text)
	if err == nil {
		return functions, nil
	}
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	for i := range list {
		var at *Error
		if errors.As(list[i], &at) {
			list[i] = fmt.Errorf("%s:%d:%d: %s", f.Name, at.Line, at.Column, at.Msg)
		}
	}
	return functions, errors.Join(list...)
}
