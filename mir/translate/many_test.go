package translate

import (
	"reflect"
	"testing"

	"mirador/omis"
)

func TestReadMany(t *testing.T) {
	const info, percentiles = "thread_get_info([],0x3)", "pa_timer_histogram([pa_t_1],[50,99])"
	m := ReadMany([]string{
		": pa_counter_read([pa_c_1]) " + info, ": pa_timer_exact([pa_t_1]) " + percentiles, ": pa_counter_read([pa_c_2]) pa_timer_exact([pa_t_2]) " + info, ": pa_counter_read([pa_c_3])",
	})
	if want := ": pa_counter_read([pa_c_1,pa_c_2,pa_c_3]) " + info + " pa_timer_exact([pa_t_1,pa_t_2]) " + percentiles; m.Request != want {
		t.Fatalf("the request is %s, want %s", m.Request, want)
	}
	one := func(n int64, objects ...omis.Token) omis.ObjectResult {
		return omis.ObjectResult{Objects: objects, Values: []omis.Value{omis.Int(n)}}
	}
	ok := omis.ServiceResult{{}}
	gone := omis.ObjectResult{Objects: []omis.Token{"pa_t_2"}, Status: omis.UnknownObject}
	threads, spread := omis.ServiceResult{one(7, "t_1"), one(8, "t_2")}, omis.ServiceResult{one(9, "pa_t_1")}
	reply := omis.Reply{ok, {one(1, "pa_c_1", "pa_c_3"), one(2, "pa_c_2")}, threads, {one(3, "pa_t_1"), gone}, spread}
	want := []omis.Reply{
		{ok, {one(1, "pa_c_1")}, threads},
		{ok, {one(3, "pa_t_1")}, spread},
		{ok, {one(2, "pa_c_2")}, {gone}, threads},
		{ok, {one(1, "pa_c_3")}},
	}
	if got := m.Split(reply); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// A service that failed as a whole has failed for each request.
	failed := omis.ObjectResult{Status: omis.InternalError}
	for i, own := range m.Split(omis.Reply{ok, {failed}, {failed}, {failed}, {failed}}) {
		if err := Done(own); err == nil {
			t.Errorf("request %d has no error", i)
		}
	}
	refused := omis.Reply{{failed}}
	for i, own := range m.Split(refused) {
		if !reflect.DeepEqual(own, refused) {
			t.Errorf("the reply to request %d is %v", i, own)
		}
	}
}
