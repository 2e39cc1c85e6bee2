package options

import (
	"slices"
	"testing"

	"temporal-slab/tslab/internal/testdata"
)

func TestIgnored(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, ",,": nil, "segment=1,warm_bytes=0,reserve_bytes=1g,slab_bytes=8k": nil, "max_bytes=64M": nil,
		"segmant=1":                             {"segmant=1 is no option: segment?"},
		"SEGMENT=1":                             {"SEGMENT=1 is no option: segment?"},
		"max-bytes=5m":                          {"max-bytes=5m is no option: max_bytes?"},
		"profile=512k":                          {"profile=512k is no option: profile_bytes?"},
		"segmant":                               {"segmant is no option: segment?"},
		"colour=1":                              {"colour=1 is no option"},
		"=1":                                    {"=1 is no option"},
		"ring_size=0,max_bytes=0k,slab_bytes=0": nil,
		"ring_size=1,x":                         {"ring_size=1 is not a number within 2..1024", "x is no option"},
		"segment":                               {"segment is not a number within 0..1"},
		"segment=":                              {"segment= is not a number within 0..1"},
		"segment=yes":                           {"segment=yes is not a number within 0..1"},
		"segment=+1":                            {"segment=+1 is not a number within 0..1"},
		"slab_bytes=5000":                       {"slab_bytes=5000 is not a number within 4096..65536, a power of two"},
		"max_bytes=99999999999g":                {"max_bytes=99999999999g is not a number within 65536..18446744073709551615"},
		"a\nb=1":                                {"a?b=1 is no option"},
	} {
		if got := Ignored(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestOfProcess(t *testing.T) {
	c := testdata.Sleeper(t, "TSLAB_OPTIONS=segmant=1")
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	if got := OfProcess(c.Process.Pid); !slices.Equal(got, []string{"segmant=1 is no option: segment?"}) {
		t.Errorf("%q", got)
	}
	if got := OfProcess(1 << 30); got != nil {
		t.Errorf("%q of nobody", got)
	}
}
