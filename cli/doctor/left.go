package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mirador/omis/place/kernel"
	"mirador/omis/place/kernel/pins"
	"mirador/probes/journal"
)

// left looks for what gateways have left in the kernel that were killed and did not come
// back. It costs targets as much as what is used.
func left(context.Context) finding {
	var of []string
	objects := 0
	for _, f := range abandoned() {
		of = append(of, f.Data())
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
// gateway was killed in the middle of its work.
func Clean(data string) error {
	data, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	if journal.Held(data) {
		return fmt.Errorf("a gateway uses %s: what it has in the kernel goes when it ends, or with \"mirador release\"", data)
	}
	var errs []error
	for _, f := range abandoned() {
		if f.Data() == data {
			errs = append(errs, f.Clear())
		}
	}
	return errors.Join(append(errs, mend(data))...)
}

// mend takes out the uprobes that a journal tells of.
func mend(data string) error {
	if _, err := os.Stat(filepath.Join(data, journal.File)); err != nil {
		return nil // it has none
	}
	j, err := journal.Open(data)
	if err != nil {
		return err
	}
	return errors.Join(kernel.Mend(j), j.Close())
}
