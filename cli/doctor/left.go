package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/persist"
	"mirador/omis/place/kernel/registrar"
	"mirador/probes/journal"
)

// left looks for objects that killed gateways have left in the kernel and that no gateway has
// adopted. Such objects slow targets down as much as objects in use.
func left(context.Context) finding {
	var of []string
	objects := 0
	for _, f := range abandoned() {
		if !slices.Contains(of, f.Data()) { // a directory that was removed and created again has several folders
			of = append(of, f.Data())
		}
		objects += len(f.Names())
	}
	if len(of) == 0 {
		return fine("nothing")
	}
	return limited(fmt.Sprintf("%d objects of killed gateways, which used %s", objects, strings.Join(of, ", ")),
		"start a gateway with --data and that directory again, which adopts them, or remove them by \"mirador doctor --clean\" and that directory, or by \"mirador doctor --clean-all\"")
}

// abandoned returns the folders of data directories that no gateway uses.
func abandoned() []*persist.Folder {
	var list []*persist.Folder
	for _, f := range persist.All() {
		// The name may belong to another directory by now.
		same, err := persist.Of(f.Data())
		if err != nil || *same != *f || !journal.Held(f.Data()) {
			list = append(list, f)
		}
	}
	return list
}

// Clean removes what a killed gateway, which will not return, has left in the kernel for a data
// directory. This includes uprobes that the kernel itself kept because gateway and registrar were
// killed during their work. command starts a process that runs registrar.Run and removes these
// uprobes, because doctor may be killed as well.
func Clean(data string, command []string) error {
	data, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	if journal.Held(data) {
		return fmt.Errorf("a gateway uses %s: what it has in the kernel goes when it ends, or with \"mirador release\"", data)
	}
	uprobes := registrar.NewClient(command, func(int) {})
	defer uprobes.Close()
	var errs []error
	for _, f := range abandoned() {
		if f.Data() == data {
			errs = append(errs, f.Clear(uprobes.TakeOut))
		}
	}
	return errors.Join(append(errs, removeRecorded(data, uprobes))...)
}

// CleanAll removes what all killed gateways have left in the kernel, whatever data directories they
// used.
func CleanAll(command []string) error {
	var errs []error
	seen := make(map[string]bool)
	for _, f := range abandoned() {
		if data := f.Data(); data != "" && !seen[data] && !journal.Held(data) {
			seen[data] = true
			errs = append(errs, Clean(data, command))
		}
	}
	_, err := remove(abandoned(), command) // includes folders of directories whose names other directories have taken
	return errors.Join(append(errs, err)...)
}

// settled is how long a folder must be unchanged before Sweep removes it.
const settled = time.Minute

// Sweep removes the objects that no gateway will adopt: those of killed gateways whose data
// directories do not exist any more. It returns the names of these directories.
func Sweep(command []string) ([]string, error) {
	var lost []*persist.Folder
	for _, f := range persist.All() {
		if f.IsLost(settled) {
			lost = append(lost, f)
		}
	}
	return remove(lost, command)
}

// remove removes folders with their content, and returns the data directories.
func remove(list []*persist.Folder, command []string) (of []string, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	uprobes := registrar.NewClient(command, func(int) {})
	defer uprobes.Close()
	var errs []error
	for _, f := range list {
		of = append(of, f.Data())
		errs = append(errs, f.Clear(uprobes.TakeOut))
	}
	return of, errors.Join(errs...)
}

// removeRecorded removes the uprobes that a journal records.
func removeRecorded(data string, uprobes *registrar.Client) error {
	if _, err := os.Stat(filepath.Join(data, journal.File)); err != nil {
		return nil // the directory has no journal
	}
	j, err := journal.Open(data)
	if err != nil {
		return err
	}
	return errors.Join(kernel.Mend(uprobes, j), j.Close())
}
