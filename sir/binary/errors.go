package binary

import "fmt"

// FormatError says that a file is no program this package can read, and why.
type FormatError struct {
	Path string
	Why  string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("cannot read %s as a program: %s", e.Path, e.Why)
}

// CodeError says that the exits of a function cannot be told: its machine code
// holds something that cannot be followed.
type CodeError struct {
	Function string
	Addr     uint64 // of the instruction, in the file
	Why      string
}

func (e *CodeError) Error() string {
	return fmt.Sprintf("cannot find the exits of %s: %s at %#x", e.Function, e.Why, e.Addr)
}

// ReplacedError says that the file a process runs cannot be had any more: it was
// deleted or replaced, and the kernel's own link to it needs a privilege.
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

// guard turns a panic of the ELF and DWARF readers, which trust their input in
// places, into a *FormatError.
func guard(path string, read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &FormatError{Path: path, Why: fmt.Sprintf("damaged (%v)", r)}
		}
	}()
	return read()
}
