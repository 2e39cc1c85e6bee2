# Hashes, lists and text.
use strict;
use warnings;
my (%by, @lines);
for my $turn (1 .. 3) {
    %by = ();
    @lines = map { sprintf("%06d item %d of %s", $_ * 7919 % 100003, $_, "x" x ($_ % 60)) } 1 .. 120000;
    for (sort @lines) {
        my ($number, undef, $item, undef, $text) = split / /;
        push @{ $by{ $number % 4999 } }, { item => $item, text => $text // "" };
    }
    my $joined = join(",", map { scalar @{ $by{$_} } . ":" . length(join("", map { $_->{text} } @{ $by{$_} })) } sort { $a <=> $b } keys %by);
    (my $other = $joined) =~ s/(\d+):(\d+)/$2-$1/g;
    my $sum = 0;
    $sum = ($sum * 31 + ord) % 1000000007 for split //, $other;
    print "$turn ", length($joined), " $sum\n";
}
