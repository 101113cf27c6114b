package criu

import (
	"fmt"
	"strings"
)

// Unfit describes a CRIU that does not work on this machine.
type Unfit struct {
	Path   string
	Does   string // what failed, such as "cannot save a process here"
	Reason string // CRIU's reason
	Log    string // CRIU's output
}

func (e *Unfit) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.Does, e.Reason) }

// unfit lists the errors of each CRIU that was tried.
type unfit []error

func (u unfit) Error() string {
	var list []string
	for _, err := range u {
		list = append(list, err.Error())
	}
	return strings.Join(list, "; ")
}

func (u unfit) Unwrap() []error { return u }
