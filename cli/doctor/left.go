package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/pins"
	"mirador/omis/place/kernel/registrar"
	"mirador/probes/journal"
)

// left looks for what gateways have left in the kernel that were killed and did not come
// back. It costs targets as much as what is used.
func left(context.Context) finding {
	var of []string
	objects := 0
	for _, f := range abandoned() {
		if !slices.Contains(of, f.Data()) { // a directory that was made anew has had several folders
			of = append(of, f.Data())
		}
		objects += len(f.Names())
	}
	if len(of) == 0 {
		return fine("nothing")
	}
	return limited(fmt.Sprintf("%d objects of killed gateways, which used %s", objects, strings.Join(of, ", ")),
		"start a gateway with --data and that directory again, which takes them over, or remove them by \"mirador doctor --clean\" and that directory")
}

// abandoned are the folders of data directories that no gateway uses.
func abandoned() []*pins.Folder {
	var list []*pins.Folder
	for _, f := range pins.All() {
		// One of that name may be another directory by now.
		same, err := pins.Of(f.Data())
		if err != nil || *same != *f || !journal.Held(f.Data()) {
			list = append(list, f)
		}
	}
	return list
}

// Clean removes what a gateway has left in the kernel that used a data directory, was
// killed, and will not come back; also uprobes that the kernel itself has left, since the
// gateway and its registrar were killed in the middle of their work. They are taken out by
// command, which runs registrar.Run: doctor may be killed as well.
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
	return errors.Join(append(errs, mend(data, uprobes))...)
}

// mend takes out the uprobes that a journal tells of.
func mend(data string, uprobes *registrar.Client) error {
	if _, err := os.Stat(filepath.Join(data, journal.File)); err != nil {
		return nil // it has none
	}
	j, err := journal.Open(data)
	if err != nil {
		return err
	}
	return errors.Join(kernel.Mend(uprobes, j), j.Close())
}
