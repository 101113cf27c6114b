package placing

import (
	"mirador/omis"
	"mirador/omis/program"
	"mirador/omis/service"
)

var _ service.HistogramStore = (*feed)(nil)

// Histograms: see service.HistogramStore.
func (f *feed) Histograms() ([]service.Histogram, error) {
	store, able := f.store.(program.HistogramStore)
	if !able {
		return nil, omis.Errorf(omis.UnsupportedService, "%s keeps no histograms", f.placer.Name())
	}
	read, err := store.Histograms()
	if err != nil {
		return nil, err
	}
	rows := make([]program.Row, len(read))
	for i := range read {
		rows[i] = read[i].Row
	}
	named := f.appendNamed(nil, rows, &named{})
	list := make([]service.Histogram, len(named))
	for i := range named {
		list[i] = service.Histogram{Row: named[i], Buckets: read[i].Buckets.Without(f.bias())}
	}
	return list, nil
}
