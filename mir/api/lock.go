package api

import "mirador/omis"

// Lock describes a lock for which threads wait at present.
type Lock struct {
	Process omis.Token `json:"process" xml:"process,attr"`
	PID     int        `json:"pid" xml:"pid,attr"`
	Address string     `json:"address" xml:"address,attr"`                   // of the word that the threads wait at
	Holder  int        `json:"holder,omitempty" xml:"holder,attr,omitempty"` // number of the thread that holds it; 0: unknown
	Waiting []int      `json:"waiting" xml:"waiting"`                        // numbers of threads
}
