package criu

import (
	"fmt"
	"strings"
)

// Unfit is a CRIU that does not do on this machine what it is for.
type Unfit struct {
	Path   string
	Does   string // "cannot save a process here"
	Reason string // its own
	Log    string // all that it said
}

func (e *Unfit) Error() string { return fmt.Sprintf("%s %s: %s", e.Path, e.Does, e.Reason) }

// unfit is what is wrong with each CRIU that was tried.
type unfit []error

func (u unfit) Error() string {
	var list []string
	for _, err := range u {
		list = append(list, err.Error())
	}
	return strings.Join(list, "; ")
}

func (u unfit) Unwrap() []error { return u }
