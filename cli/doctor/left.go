package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
		"start a gateway with --data and that directory again, which takes them over, or remove them by \"mirador doctor --clean\"")
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

// Clean removes what killed gateways have left in the kernel. It returns the data
// directories that they used.
func Clean() ([]string, error) {
	var of []string
	var errs []error
	for _, f := range abandoned() {
		of = append(of, f.Data())
		errs = append(errs, f.Clear())
	}
	return of, errors.Join(errs...)
}
