package binary

import (
	"fmt"

	"mirador/sir"
)

// FormatError reports that a file is not a program that this package can read.
type FormatError struct {
	Path string
	Why  string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("cannot read %s as a program: %s", e.Path, e.Why)
}

// CodeError reports that the exits of a function, or the regions inside it, are unknown, because
// its machine code cannot be followed.
type CodeError struct {
	Function string
	Addr     uint64 // of the instruction, in the file
	Why      string
}

func (e *CodeError) Error() string {
	return fmt.Sprintf("cannot follow the code of %s: %s at %#x", e.Function, e.Why, e.Addr)
}

// RegionError reports that no addresses count or time a region inside a function.
type RegionError struct{ Region, Why string }

func (e *RegionError) Error() string { return e.Region + ": " + e.Why }

func refusal(r *sir.Region, why string) error {
	if why == "" {
		return nil
	}
	return &RegionError{r.ID, why}
}

// ReplacedError reports that the file of a running program is not accessible: it was deleted
// or replaced, and the kernel's link to it requires a privilege.
type ReplacedError struct {
	PID  int
	Path string
	Err  error // of the kernel's link
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("cannot read the %s that process %d runs: the file was replaced or deleted, and reading the "+
		"mapped one needs CAP_CHECKPOINT_RESTORE: %v", e.Path, e.PID, e.Err)
}

func (e *ReplacedError) Unwrap() error { return e.Err }

// guard converts a panic to a *FormatError. The ELF and DWARF readers do not check all their
// input.
func guard(path string, read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &FormatError{Path: path, Why: fmt.Sprintf("damaged (%v)", r)}
		}
	}()
	return read()
}
