<?php
/* Strings, arrays, objects, JSON, regular expressions and sorting, as pages in PHP make them. */
class Node {
    public $left = null, $right = null;
    public function __construct(public int $key) {}
}

function tree(int $n): Node {
    $root = new Node(0);
    $state = 12345;
    for ($i = 0; $i < $n; $i++) {
        $state = ($state * 1103515245 + 12345) & 0x7FFFFFFF;
        for ($at = $root;;) {
            $side = $state < $at->key ? 'left' : 'right';
            if ($at->$side === null) { $at->$side = new Node($state); break; }
            $at = $at->$side;
        }
    }
    return $root;
}

function depth(?Node $at): int { return $at === null ? 0 : 1 + max(depth($at->left), depth($at->right)); }

$digest = '';
for ($turn = 0; $turn < 4; $turn++) {
    $documents = [];
    for ($i = 0; $i < 20000; $i++)
        $documents["key$i"] = ['numbers' => range(0, $i % 23), 'text' => str_repeat('x', $i % 80), 'nested' => [['n' => $i], ['m' => $i / 4]]];
    $text = json_encode($documents);
    $again = json_decode($text, true);
    if ($again != $documents) exit(1);
    preg_match_all('/key([0-9]+)/', $text, $found);
    $words = array_count_values(array_map(fn($n) => 'w' . $n % 97, $found[1]));
    ksort($words);
    $lines = [];
    for ($i = 0; $i < 60000; $i++) $lines[] = sprintf('%06d line of some text %d', $i * 7919 % 10007, $i);
    sort($lines);
    $digest = hash('sha256', $digest . $text . json_encode($words) . implode("\n", $lines) . depth(tree(20000)));
}
echo $digest, "\n";
