package plot

// Chart is what is drawn.
type Chart struct {
	Name   string   `json:"name"` // of the file, without its ending
	Title  string   `json:"title"`
	Note   string   `json:"note,omitempty"` // below the chart
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
}

// Axis is one of both.
type Axis struct {
	Label string  `json:"label"` // with the unit
	Least float64 `json:"least"` // what is less is drawn there; 0: whatever the least is
	Kind  Kind    `json:"kind"`
}

// Kind says what an axis' numbers look like.
type Kind string

const (
	Numbers     Kind = "numbers"
	Nanoseconds Kind = "nanoseconds"
	Shares      Kind = "shares" // parts of one, in percent
)

// Series is one line.
type Series struct {
	Name   string  `json:"name"`
	Colour int     `json:"-"` // of a few that can be told apart
	Points []Point `json:"points"`
}

// Point is one figure.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}
